//! A series of measured times, with the model that they should follow.

use serde_json::{Value, json};

use super::fit::{Fit, Term};
use crate::{
    output::table,
    plot::{Axes, Curve, svg},
};

/// What a series measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Kind {
    /// Key in JSON.
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    /// Key of x in JSON.
    pub(super) x: &'static str,
    /// What the rate counts.
    pub(super) unit: &'static str,
    /// The time that is modelled.
    pub(super) time: &'static str,
    pub(super) terms: &'static [Term],
    /// How many of the counted things x stands for at a point: one, or x itself.
    pub(super) counts_x: bool,
    pub(super) log_x: bool,
}

pub(super) const DECODE: Kind = Kind {
    key: "decode",
    title: "decode by depth",
    x: "depth",
    unit: "tokens/s",
    time: "a token",
    terms: &[Term::Constant, Term::Linear],
    counts_x: false,
    log_x: false,
};
pub(super) const PREFILL: Kind = Kind {
    key: "prefill",
    title: "prefill by length",
    x: "tokens",
    unit: "tokens/s",
    time: "a prompt",
    terms: &[Term::Constant, Term::Linear, Term::Quadratic],
    counts_x: true,
    log_x: true,
};
pub(super) const ADAPTERS: Kind = Kind {
    key: "adapters",
    title: "decode by adapters of rank 16",
    x: "adapters",
    unit: "tokens/s",
    time: "a token",
    terms: &[Term::Constant, Term::Linear],
    counts_x: false,
    log_x: false,
};
pub(super) const STREAMS: Kind = Kind {
    key: "streams",
    title: "decode by streams, together",
    x: "streams",
    unit: "tokens/s",
    time: "a pass",
    terms: &[Term::Constant, Term::Linear],
    counts_x: true,
    log_x: false,
};
pub(super) const IMAGES: Kind = Kind {
    key: "images",
    title: "image encoder by soft tokens",
    x: "tokens",
    unit: "images/s",
    time: "an image",
    terms: &[Term::Constant, Term::Linear, Term::Quadratic],
    counts_x: false,
    log_x: false,
};

/// A measured series.
#[derive(Debug)]
pub(super) struct Series {
    kind: Kind,
    /// x, and the mean and deviation of the rate.
    points: Vec<(usize, f64, f64)>,
    fit: Fit,
}

impl Series {
    /// A series of rates.
    pub(super) fn new(kind: Kind, points: Vec<(usize, f64, f64)>) -> Self {
        let fit = Fit::new(kind.terms, &times(&kind, &points));
        Self { kind, points, fit }
    }

    /// The modelled rate.
    fn modelled(&self, x: usize) -> f64 {
        counted(&self.kind, x) / self.fit.at(x as f64)
    }

    /// A table, the model, and where the series has steps.
    pub(super) fn text(&self) -> String {
        let Kind { title, x, unit, time, .. } = self.kind;
        let head = [x.to_uppercase(), unit.to_uppercase(), "MODEL".into(), "DIFFERENCE".into()];
        let mut rows = vec![head.to_vec()];
        rows.extend(self.points.iter().map(|(x, mean, deviation)| {
            let modelled = self.modelled(*x);
            vec![
                x.to_string(),
                format!("{mean:.1} ± {deviation:.1}"),
                format!("{modelled:.1}"),
                format!("{:+.1} %", (mean / modelled - 1.0) * 100.0),
            ]
        }));
        let steps = self.fit.steps(&times(&self.kind, &self.points));
        let steps: Vec<String> = steps
            .into_iter()
            .map(|(from, to)| format!("a step between {from} and {to}\n"))
            .collect();
        format!(
            "\n{title}\n{}model: {time} takes {} ms\n{}",
            table(&rows),
            self.fit.text(x, 1e-3),
            steps.concat()
        )
    }

    pub(super) fn key(&self) -> &'static str {
        self.kind.key
    }

    pub(super) fn json(&self) -> Value {
        let point = |(x, mean, deviation): &(usize, f64, f64)| {
            let mut point = json!({
                "deviation": deviation, "model": self.modelled(*x), self.kind.x: x,
            });
            point[self.kind.unit.replace("/s", "_per_second")] = json!(mean);
            point
        };
        self.points.iter().map(point).collect()
    }

    /// The measured and the modelled curve.
    pub(super) fn plot(&self) -> String {
        let name = format!("{}, {}", self.kind.title, self.kind.unit);
        let curve = |name, rate: &dyn Fn(&(usize, f64, f64)) -> f64| {
            let points = self.points.iter().map(|point| (point.0 as f64, rate(point)));
            Curve { name, points: points.collect() }
        };
        let digits = if self.points.iter().any(|(_, mean, _)| *mean > 10.0) { 0 } else { 2 };
        let axes = Axes { from_zero: true, log_x: self.kind.log_x, digits };
        let measured = curve(&name, &|point| point.1);
        svg(&[measured, curve("model", &|point| self.modelled(point.0))], axes)
    }
}

/// What a point's time is divided by.
fn counted(kind: &Kind, x: usize) -> f64 {
    if kind.counts_x { x as f64 } else { 1.0 }
}

/// The time of each point.
fn times(kind: &Kind, points: &[(usize, f64, f64)]) -> Vec<(f64, f64)> {
    points.iter().map(|(x, mean, _)| (*x as f64, counted(kind, *x) / mean)).collect()
}

#[cfg(test)]
mod tests {
    use super::{DECODE, STREAMS, Series};

    #[test]
    fn tables_compare_with_the_model() {
        let points = [0, 1000, 2000].map(|x| (x, 1.0 / (1e-3 + 1e-6 * x as f64), 0.5));
        let text = Series::new(DECODE, points.to_vec()).text();
        for part in [
            "DEPTH",
            "1000.0 ± 0.5",
            "500.0",
            "+0.0 %",
            "a token takes 1.000e0 + 1.000e-3 × depth ms",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!text.contains("a step"), "{text}");
    }

    #[test]
    fn streams_count_all_tokens_of_a_pass() {
        let points = [1, 2, 4, 8].map(|x| (x, x as f64 / 2e-3, 0.0));
        let series = Series::new(STREAMS, points.to_vec());
        let json = series.json();
        assert!((json[3]["model"].as_f64().expect("a rate") - 4000.0).abs() < 1e-6);
        assert_eq!(json[3]["streams"], 8);
        assert_eq!(json[3]["tokens_per_second"], 4000.0);
    }
}
