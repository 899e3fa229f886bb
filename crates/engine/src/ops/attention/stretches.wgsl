// How the keys of a run are dealt out to several workgroups: in stretches of whole tiles, the same for all rows. The list is
// made for the longest cache; how much of it lives is known only now.
struct Stretches {
    first: u32,
    end: u32,
    length: u32,
}

fn stretches() -> Stretches {
    let first = first_key(run.position);
    let end = run.position + run.count;
    let share = (end - first + p.splits - 1u) / p.splits;
    return Stretches(first, end, max((share + TILE - 1u) / TILE, 1u) * TILE);
}
