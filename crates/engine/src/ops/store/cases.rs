use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    let token = Case::new("store", "token", |g: &mut Graph| {
        let (state, id) = (g.state("token", Type::u32([1])), g.input("id", Type::u32([1])));
        g.store(state, id);
        vec![state]
    });
    let floats = Case::new("store", "f32 3x257", |g: &mut Graph| {
        let ty = Type::f32([3, 257]);
        let (state, x) = (g.state("state", ty.clone()), g.input("x", ty));
        g.store(state, x);
        vec![state]
    });
    vec![
        token.given("token", Data::U32(vec![3])).given("id", Data::U32(vec![106])).gives(&[106.0]),
        floats,
    ]
}
