use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    [(0, 106.0), (2, 108.0), (3, 100.0), (5, 102.0)]
        .map(|(place, token)| member(place).gives(&[token]))
        .into()
}

/// Clusters 2 and 0 of three, with three members each.
fn member(place: u32) -> Case {
    Case::new("member", format!("place {place}"), |g: &mut Graph| {
        let place = g.input("place", Type::u32([1]));
        let (clusters, members) =
            (g.input("clusters", Type::u32([2])), g.input("members", Type::u32([9])));
        vec![g.member(place, clusters, members, 3)]
    })
    .given("place", Data::U32(vec![place]))
    .given("clusters", Data::U32(vec![2, 0]))
    .given("members", Data::U32((100..109).collect()))
}
