// Results are stored in the order in which their reader's weight consumes them: group by group of its units, so that neighbouring lanes read neighbouring
// numbers. Two halves of SPAN columns share their units, 16 columns of each half to a unit; a row has UNITS of them.
override SPAN: u32 = 32u;
override UNITS: u32 = 1u;

fn y_place(row: u32) -> u32 {
    let unit = row / SPAN * (SPAN / 32u) + row % (SPAN / 2u) / 16u;
    let group = row % SPAN / (SPAN / 2u) * 4u + row % 16u / 4u;
    return (group * UNITS + unit) * 4u + row % 4u;
}
