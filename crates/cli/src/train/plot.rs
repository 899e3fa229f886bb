//! Loss curves: for terminals, and as SVG in a page.

use rullama_train::Run;

/// Rows and columns of the plot for terminals.
const ROWS: usize = 10;
const COLUMNS: usize = 60;
/// Size of the SVG, and the room for labels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const MARGIN: f64 = 48.0;

/// The smallest and largest of some losses, a little apart.
fn range(losses: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = losses.filter(|loss| loss.is_finite());
    let (low, high) =
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    if low > high { (0.0, 1.0) } else { (low, high.max(low + 1e-9)) }
}

/// A curve of characters; each column is the mean of its steps.
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

/// The curve as an image of lines.
pub(super) fn svg(losses: &[f64], evaluations: &[(u32, f64)]) -> String {
    let (low, high) =
        range(losses.iter().copied().chain(evaluations.iter().map(|(_, loss)| *loss)));
    let last = losses.len().max(2) as f64 - 1.0;
    let point = |step: f64, loss: f64| {
        let x = MARGIN + step / last * (WIDTH - 2.0 * MARGIN);
        let y = HEIGHT - MARGIN - (loss - low) / (high - low) * (HEIGHT - 2.0 * MARGIN);
        format!("{x:.1},{y:.1}")
    };
    let line = |points: Vec<String>, color: &str| {
        format!(
            "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\" points=\"{}\"/>\n",
            points.join(" ")
        )
    };
    let (left, right, bottom) = (MARGIN, WIDTH - MARGIN, HEIGHT - MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <path d=\"M{left},{MARGIN} V{bottom} H{right}\" fill=\"none\" stroke=\"#888\"/>\n\
         <text x=\"4\" y=\"{MARGIN}\">{high:.4}</text><text x=\"4\" y=\"{bottom}\">{low:.4}</text>\n\
         <text x=\"{left}\" y=\"{}\">1</text><text x=\"{right}\" y=\"{0}\" text-anchor=\"end\">{1}</text>\n",
        bottom + 18.0,
        losses.len()
    );
    let known = (0..).zip(losses).filter(|(_, loss)| loss.is_finite());
    svg += &line(known.map(|(step, loss)| point(f64::from(step), *loss)).collect(), "#1a73e8");
    if !evaluations.is_empty() {
        let points = evaluations.iter().map(|(step, loss)| point(f64::from(*step) - 1.0, *loss));
        svg += &line(points.collect(), "#d93025");
    }
    svg + "<text x=\"60\" y=\"20\" fill=\"#1a73e8\">loss by step</text><text x=\"160\" y=\"20\" fill=\"#d93025\">evaluation</text>\n</svg>\n"
}

/// A page about a run.
pub(super) fn page(svg: &str, run: &Run, model: &str) -> String {
    let escaped = model.replace('&', "&amp;").replace('<', "&lt;");
    let (first, last) = (run.losses().first(), run.losses().last());
    let number = |loss: Option<&f64>| loss.map_or("–".into(), |loss| format!("{loss:.4}"));
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Training of {escaped}</title>\n\
         <body style=\"font-family: sans-serif; max-width: 760px; margin: 2em auto\">\n\
         <h1>Training of {escaped}</h1>\n{svg}\
         <table>\n<tr><td>steps<td>{}\n<tr><td>first loss<td>{}\n<tr><td>last loss<td>{}\n\
         <tr><td>sequences<td>{}\n<tr><td>numbers that learn<td>{}\n</table>\n",
        run.losses().len(),
        number(first),
        number(last),
        run.sequences().len(),
        run.trainer().parameters(),
    )
}

#[cfg(test)]
mod tests {
    use super::{svg, text};

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

    #[test]
    fn images_hold_every_step_and_no_nonsense() {
        let image = svg(&[2.0, 1.0, f64::NAN], &[(2, 1.5)]);
        assert!(image.contains("48.0,48.0") && !image.contains("NaN"), "{image}");
        assert_eq!(image.matches("<polyline").count(), 2);
        assert!(!svg(&[], &[]).contains("NaN"));
    }
}
