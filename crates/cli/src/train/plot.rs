//! Loss curves for terminals and as SVG.

use rullama_train::Run;

use crate::plot::{self, Axes, Curve, escaped, range};

/// Rows and columns of the plot for terminals.
const ROWS: usize = 10;
const COLUMNS: usize = 60;
/// A curve in block characters; each column is the mean of its steps.
pub(super) fn text(losses: &[f64]) -> String {
    if losses.len() < 2 {
        return String::new();
    }
    let columns = COLUMNS.min(losses.len());
    let mean = |column: usize| {
        let (first, end) = (column * losses.len() / columns, (column + 1) * losses.len() / columns);
        losses[first..end].iter().sum::<f64>() / (end - first) as f64
    };
    let means: Vec<f64> = (0..columns).map(mean).collect();
    let (low, high) = range(means.iter().copied());
    let level = |loss: f64| ((loss - low) / (high - low) * (ROWS * 8 - 1) as f64).round() as usize;
    let blocks: Vec<char> = " ▁▂▃▄▅▆▇█".chars().collect();
    let mut plot = String::new();
    for row in (0..ROWS).rev() {
        let label = match row {
            0 => format!("{low:>9.4}"),
            _ if row + 1 == ROWS => format!("{high:>9.4}"),
            _ => " ".repeat(9),
        };
        let cell = |loss: &f64| blocks[(level(*loss) + 1).saturating_sub(row * 8).min(8)];
        let line: String = means.iter().map(cell).collect();
        plot += &format!("{label} │{}\n", line.trim_end());
    }
    plot + &format!(
        "{:>9} └{}\n{:>11}1{:>width$}\n",
        "loss",
        "─".repeat(columns),
        "",
        losses.len(),
        width = columns - 1
    )
}

/// Training and evaluation losses by step, as SVG.
pub(super) fn svg(losses: &[f64], evaluations: &[(u32, f64)]) -> String {
    let axes = Axes { from_zero: false, log_x: false, digits: 4 };
    let losses = (1..).map(f64::from).zip(losses.iter().copied()).collect();
    let evaluations = evaluations.iter().map(|(step, loss)| (f64::from(*step), *loss)).collect();
    let loss = Curve { name: "loss by step", points: losses };
    plot::svg(&[loss, Curve { name: "evaluation", points: evaluations }], axes)
}

/// The HTML report of a run.
pub(super) fn page(svg: &str, run: &Run, model: &str) -> String {
    let escaped = escaped(model);
    let (first, last) = (run.losses().first(), run.losses().last());
    let number = |loss: Option<&f64>| loss.map_or("–".into(), |loss| format!("{loss:.4}"));
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Training of {escaped}</title>\n\
         <body style=\"font-family: sans-serif; max-width: 760px; margin: 2em auto\">\n\
         <h1>Training of {escaped}</h1>\n{svg}\
         <table>\n<tr><td>steps<td>{}\n<tr><td>first loss<td>{}\n<tr><td>last loss<td>{}\n\
         <tr><td>sequences<td>{}\n<tr><td>trainable parameters<td>{}\n</table>\n",
        run.losses().len(),
        number(first),
        number(last),
        run.sequences().len(),
        run.trainer().parameters(),
    )
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn curves_fall_from_left_to_right() {
        let losses: Vec<f64> = (0..200).map(|step| 1.0 / f64::from(step + 1)).collect();
        let plot = text(&losses);
        assert_eq!(plot.lines().count(), 12);
        let top = plot.lines().next().unwrap_or_default();
        assert!(top.contains('│') && top.matches('█').count() <= 2, "{plot}");
        assert!(text(&[1.0]).is_empty());
        assert_eq!(text(&[1.0, 1.0]).lines().count(), 12);
    }
}
