    // Of the slab a kernel is dispatched for: where its planes begin, numbers and units of a row, its rows, the first one and all rows of the
    // weight; and columns or ids.
    plane0: u32,
    plane1: u32,
    plane2: u32,
    plane3: u32,
    width: u32,
    row_units: u32,
    rows: u32,
    first_row: u32,
    all_rows: u32,
    count: u32,
