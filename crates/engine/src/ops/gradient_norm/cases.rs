use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = [1, 17, 257, 3000, 140_000].map(squares).into();
    cases.push(
        squares(2)
            .given("total", Data::F32(vec![1.0]))
            .given("x", Data::F32(vec![3.0, -4.0]))
            .gives(&[26.0]),
    );
    let settings = |scale: f32| vec![0.1, 0.9, 0.999, 1e-8, 0.0, 10.0, 1000.0, scale];
    for (scale, limit, wanted) in
        [(1.0, 10.0, 1.0), (1.0, 1.0, 0.2), (0.5, 1.0, 0.2), (2.0, 50.0, 2.0)]
    {
        cases.push(
            clip(&format!("scale {scale} below {limit}"))
                .given("settings", Data::F32(settings(scale)))
                .given("squares", Data::F32(vec![25.0]))
                .given("limit", Data::F32(vec![limit]))
                .gives(&settings(wanted)),
        );
    }
    cases
}

fn squares(n: usize) -> Case {
    Case::new("square_sum", format!("{n}"), move |g: &mut Graph| {
        let total = g.input("total", Type::f32([1]));
        let x = g.input("x", Type::f32([n]));
        vec![g.square_sum(total, x)]
    })
    .tolerance(Tolerance::ARITHMETIC.terms(n))
}

fn clip(name: &str) -> Case {
    Case::new("clip_settings", name, |g: &mut Graph| {
        let settings = g.input("settings", Type::f32([8]));
        let (squares, limit) =
            (g.input("squares", Type::f32([1])), g.input("limit", Type::f32([1])));
        vec![g.clip_settings(settings, squares, limit)]
    })
}
