//! Plots as SVG, for the HTML pages that the program writes.

/// Size of an image, and the margin for labels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const MARGIN: f64 = 48.0;
/// Colours of curves, in their order.
const COLORS: [&str; 4] = ["#1a73e8", "#d93025", "#188038", "#9334e6"];

/// A named series of points, from left to right.
#[derive(Debug, Clone)]
pub(crate) struct Curve<'a> {
    pub(crate) name: &'a str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Options of the axes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axes {
    /// Whether the y axis starts at zero instead of the smallest value.
    pub(crate) from_zero: bool,
    /// Whether the x axis is logarithmic.
    pub(crate) log_x: bool,
    /// Digits of the y labels.
    pub(crate) digits: usize,
}

/// The smallest and the largest finite value; they differ.
pub(crate) fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    let (low, high) =
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    if low > high { (0.0, 1.0) } else { (low, high.max(low + 1e-9)) }
}

/// Plots the curves in one image. Points that are not finite are skipped.
pub(crate) fn svg(curves: &[Curve<'_>], axes: Axes) -> String {
    let all = || curves.iter().flat_map(|curve| &curve.points);
    let scaled = |x: f64| if axes.log_x { x.max(1.0).log2() } else { x };
    let (first, last) = range(all().map(|(x, _)| *x));
    let (left_end, right_end) = (scaled(first), scaled(last).max(scaled(first) + 1e-9));
    let (low, high) = range(all().map(|(_, y)| *y));
    let low = if axes.from_zero { low.min(0.0) } else { low };
    let point = |(x, y): &(f64, f64)| {
        let x = MARGIN + (scaled(*x) - left_end) / (right_end - left_end) * (WIDTH - 2.0 * MARGIN);
        let y = HEIGHT - MARGIN - (y - low) / (high - low) * (HEIGHT - 2.0 * MARGIN);
        format!("{x:.1},{y:.1}")
    };
    let (left, right, bottom, digits) = (MARGIN, WIDTH - MARGIN, HEIGHT - MARGIN, axes.digits);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <path d=\"M{left},{MARGIN} V{bottom} H{right}\" fill=\"none\" stroke=\"#888\"/>\n\
         <text x=\"4\" y=\"{MARGIN}\">{high:.digits$}</text><text x=\"4\" y=\"{bottom}\">{low:.digits$}</text>\n\
         <text x=\"{left}\" y=\"{under}\">{first}</text><text x=\"{right}\" y=\"{under}\" text-anchor=\"end\">{last}</text>\n",
        under = bottom + 18.0,
    );
    let mut legend = 60.0;
    for (curve, color) in curves.iter().zip(COLORS.iter().cycle()) {
        let finite = curve.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        let points: Vec<String> = finite.map(point).collect();
        if !points.is_empty() {
            svg += &format!(
                "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\" points=\"{}\"/>\n\
                 <text x=\"{legend}\" y=\"20\" fill=\"{color}\">{}</text>\n",
                points.join(" "),
                escaped(curve.name),
            );
        }
        legend += 20.0 + 7.0 * curve.name.len() as f64;
    }
    svg + "</svg>\n"
}

/// Escapes text for HTML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::{Axes, Curve, svg};

    const AXES: Axes = Axes { from_zero: false, log_x: false, digits: 4 };

    #[test]
    fn points_that_are_not_finite_are_skipped() {
        let losses = Curve { name: "loss", points: vec![(1.0, 2.0), (2.0, 1.0), (3.0, f64::NAN)] };
        let other = Curve { name: "a < b", points: vec![(2.0, 1.5)] };
        let image = svg(&[losses, other], AXES);
        assert!(image.contains("48.0,48.0") && !image.contains("NaN"), "{image}");
        assert!(image.contains("a &lt; b"), "{image}");
        assert_eq!(image.matches("<polyline").count(), 2);
        assert!(!svg(&[], AXES).contains("NaN"));
    }

    #[test]
    fn logarithmic_x_axis() {
        let points = vec![(32.0, 0.0), (64.0, 5.0), (128.0, 10.0)];
        let axes = Axes { from_zero: true, log_x: true, digits: 0 };
        let image = svg(&[Curve { name: "speed", points }], axes);
        assert!(image.contains("48.0,272.0 360.0,160.0 672.0,48.0"), "{image}");
    }
}
