// x itself.
fn column_at(i: u32) -> Column {
    return Column(h[i], vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0));
}

fn norms_of(squares: vec4<f32>, lane: Lane) -> Norms {
    return Norms(1.0, 0.0, 1.0);
}

fn write_results(i: u32, column: Column, norms: Norms) {}
