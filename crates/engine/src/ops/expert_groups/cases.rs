use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::Case,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        [(1, 1, 1, 1), (3, 2, 17, 3), (300, 8, 128, 300), (300, 8, 128, 7), (64, 1, 256, 0)]
            .map(|(t, k, experts, count)| {
                groups(t, k, experts, (0..t * k).map(|i| scattered(i, experts)).collect(), count)
            })
            .into();
    cases.push(groups(2, 2, 3, vec![2, 0, 0, 2], 2).gives(&[1.0, 2.0, 0.0, 3.0]));
    cases.push(groups(2, 2, 3, vec![2, 0, 0, 2], 1).gives(&[1.0, 0.0, 2.0, 3.0]));
    // All tokens go to one expert.
    cases.push(groups(257, 1, 3, vec![1; 257], 257));
    let ids = (0..512 * 8).map(|i| scattered(i, 128)).collect();
    cases.push(groups(512, 8, 128, ids, 512).bench());
    cases
}

fn scattered(i: usize, experts: usize) -> u32 {
    (i * 7919 % 1009 % experts) as u32
}

fn groups(t: usize, k: usize, experts: usize, ids: Vec<u32>, count: u32) -> Case {
    let build = move |g: &mut Graph| {
        let ids = g.input("ids", Type::u32([t, k]));
        let (order, offsets) = g.expert_groups(ids, experts);
        vec![order, offsets]
    };
    Case::new("expert_groups", format!("{t}x{k} of {experts}, {count} live"), build)
        .given("ids", Data::U32(ids))
        .step(0, count)
}
