use super::GatherTokens;
use crate::{
    cpu::Data,
    graph::{Graph, Type},
    ops::{Paging, Sequences},
    suite::Case,
};

const SLOTS: [u32; 5] = [100, 101, 102, 103, 104];

pub(crate) fn cases() -> Vec<Case> {
    let slot = |slot: u32| slot | GatherTokens::ON_DEVICE;
    vec![
        gather(&[7]).gives(&[7.0]),
        gather(&[slot(4), 4, slot(0), 0]).gives(&[104.0, 4.0, 100.0, 0.0]),
        gather(&(0..70).map(|i| if i % 3 == 0 { slot(i % 5) } else { i }).collect::<Vec<_>>()),
        scatter(&[2], 1).gives(&[100.0, 101.0, 50.0, 103.0, 104.0]),
        // The last row is not live.
        scatter(&[4, 0, 3], 2).gives(&[51.0, 101.0, 102.0, 103.0, 50.0]),
    ]
}

fn gather(ids: &[u32]) -> Case {
    let rows = ids.len();
    Case::new("latest_tokens", format!("gather {rows} rows"), move |g: &mut Graph| {
        let given = g.input("given", Type::u32([rows]));
        let latest = g.state("latest", Type::u32([SLOTS.len()]));
        vec![g.gather_tokens(given, latest)]
    })
    .given("given", Data::U32(ids.into()))
    .given("latest", Data::U32(SLOTS.into()))
}

fn scatter(slots: &[u32], count: u32) -> Case {
    let rows = slots.len();
    let words = slots.iter().flat_map(|slot| {
        let mut words = Sequences::words(9, 1, &[0], 1);
        words[Sequences::SLOT] = *slot;
        words
    });
    Case::new("latest_tokens", format!("scatter {count} of {rows} rows"), move |g: &mut Graph| {
        let latest = g.state("latest", Type::u32([SLOTS.len()]));
        let tokens = g.input("tokens", Type::u32([rows]));
        let value = g.input("sequences", Type::u32([rows, Sequences::HEADER + 1]));
        let paging = Paging { page: 64, context: 300, one_sequence: false };
        g.scatter_tokens(latest, tokens, Sequences { value, paging });
        vec![latest]
    })
    .given("latest", Data::U32(SLOTS.into()))
    .given("tokens", Data::U32((50..).take(rows).collect()))
    .given("sequences", Data::U32(words.collect()))
    .step(1 << 30, count)
}
