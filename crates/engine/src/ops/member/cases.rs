use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    [(0, 106.0), (2, 108.0), (3, 100.0), (5, 102.0)]
        .map(|(position, token)| member(position).gives(&[token]))
        .into()
}

/// Clusters 2 and 0 of three, with three members each.
fn member(position: u32) -> Case {
    Case::new("member", format!("position {position}"), |g: &mut Graph| {
        let position = g.input("position", Type::u32([1]));
        let (clusters, members) =
            (g.input("clusters", Type::u32([2])), g.input("members", Type::u32([9])));
        vec![g.member(position, clusters, members, 3)]
    })
    .given("position", Data::U32(vec![position]))
    .given("clusters", Data::U32(vec![2, 0]))
    .given("members", Data::U32((100..109).collect()))
}
