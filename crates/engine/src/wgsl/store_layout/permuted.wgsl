// Outputs are stored in the order in which the next matmul's weight consumes them: group by group of its units, so that adjacent lanes
// read adjacent elements. Two halves of SPAN columns share their units, 16 columns of each half per unit; a row has UNITS units.
override SPAN: u32 = 32u;
override UNITS: u32 = 1u;

fn y_index(row: u32) -> u32 {
    let unit = row / SPAN * (SPAN / 32u) + row % (SPAN / 2u) / 16u;
    let group = row % SPAN / (SPAN / 2u) * 4u + row % 16u / 4u;
    return (group * UNITS + unit) * 4u + row % 4u;
}
