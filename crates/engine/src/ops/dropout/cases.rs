use super::Dropout;
use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        [(1, 1, 0.5), (3, 17, 0.1), (2, 257, 0.9)].map(|(t, d, rate)| leave_out(t, d, rate)).into();
    cases.push(leave_out(3, 5, 0.4).gradient());
    cases.push(leave_out(1, 2, 0.0).given("x", Data::F32(vec![3.0, -4.0])).gives(&[3.0, -4.0]));
    cases
}

fn leave_out(t: usize, d: usize, rate: f32) -> Case {
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
    fn about_the_rate_is_left_out_and_seeds_differ() {
        let op = Dropout { rate: 0.25, salt: 3 };
        let left = |seed| (0..10_000).filter(|place| !op.stays(seed, *place)).count();
        assert!((2300..2700).contains(&left(1)), "{}", left(1));
        let same = (0..10_000).filter(|place| op.stays(1, *place) == op.stays(2, *place)).count();
        assert!(same < 7000, "{same} of 10000 places agree");
    }
}
