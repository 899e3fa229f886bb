    // The slab that the kernel is dispatched for: offsets of its planes, elements and units per row, its number of rows, its first row and
    // the number of rows of the whole weight; then the number of columns or ids.
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
