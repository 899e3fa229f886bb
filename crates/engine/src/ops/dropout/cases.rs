use super::Dropout;
use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        [(1, 1, 0.5), (3, 17, 0.1), (2, 257, 0.9)].map(|(t, d, rate)| dropout(t, d, rate)).into();
    cases.push(dropout(3, 5, 0.4).gradient());
    cases.push(dropout(1, 2, 0.0).given("x", Data::F32(vec![3.0, -4.0])).gives(&[3.0, -4.0]));
    cases
}

fn dropout(t: usize, d: usize, rate: f32) -> Case {
    Case::new("dropout", format!("{rate} of {t}x{d}"), move |g: &mut Graph| {
        let x = g.input("x", Type::f32([t, d]));
        vec![g.dropout(x, Dropout { rate, salt: 7 })]
    })
    .seed(11)
}

#[cfg(test)]
mod tests {
    use super::Dropout;

    #[test]
    fn about_the_rate_is_dropped_and_seeds_differ() {
        let op = Dropout { rate: 0.25, salt: 3 };
        let dropped = |seed| (0..10_000).filter(|index| !op.keeps(seed, *index)).count();
        assert!((2300..2700).contains(&dropped(1)), "{}", dropped(1));
        let same = (0..10_000).filter(|index| op.keeps(1, *index) == op.keeps(2, *index)).count();
        assert!(same < 7000, "{same} of 10000 elements agree");
    }
}
