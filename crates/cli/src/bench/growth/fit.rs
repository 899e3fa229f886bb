//! The model that a series of times should follow: a sum of terms with coefficients that are not negative, fitted by least squares of
//! relative differences.

/// A difference from the model that an earlier point did not have, beyond which a series has a step.
const STEP: f64 = 0.15;

/// A term of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Term {
    /// Independent of x.
    Constant,
    /// Proportional to x.
    Linear,
    /// Proportional to the square of x.
    Quadratic,
}

impl Term {
    fn at(self, x: f64) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Linear => x,
            Self::Quadratic => x * x,
        }
    }

    fn name(self, x: &str) -> String {
        match self {
            Self::Constant => String::new(),
            Self::Linear => format!(" × {x}"),
            Self::Quadratic => format!(" × {x}²"),
        }
    }
}

/// A fitted model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fit(Vec<(Term, f64)>);

impl Fit {
    /// Fits positive times; terms with negative coefficients are left out.
    pub(super) fn new(terms: &[Term], points: &[(f64, f64)]) -> Self {
        let mut terms = terms.to_vec();
        loop {
            let coefficients = least_squares(&terms, points);
            let worst = coefficients
                .iter()
                .enumerate()
                .filter(|(_, coefficient)| **coefficient < 0.0 || !coefficient.is_finite())
                .min_by(|a, b| a.1.total_cmp(b.1));
            match worst {
                Some((at, _)) => drop(terms.remove(at)),
                None => return Self(terms.into_iter().zip(coefficients).collect()),
            }
        }
    }

    /// The modelled time.
    pub(super) fn at(&self, x: f64) -> f64 {
        self.0.iter().map(|(term, coefficient)| term.at(x) * coefficient).sum()
    }

    /// How much longer a measured time is than the modelled one, as a share.
    pub(super) fn difference(&self, (x, time): (f64, f64)) -> f64 {
        time / self.at(x) - 1.0
    }

    /// Where neighbouring points differ from the model by shares that are far apart.
    pub(super) fn steps(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let pairs = points
            .windows(2)
            .filter(|pair| (self.difference(pair[1]) - self.difference(pair[0])).abs() > STEP);
        pairs.map(|pair| (pair[0].0, pair[1].0)).collect()
    }

    /// The model as text, with times of a unit of `scale` seconds.
    pub(super) fn text(&self, x: &str, scale: f64) -> String {
        let terms = self.0.iter().filter(|(_, coefficient)| *coefficient > 0.0);
        let terms: Vec<String> = terms
            .map(|(term, coefficient)| format!("{:.3e}{}", coefficient / scale, term.name(x)))
            .collect();
        terms.join(" + ")
    }
}

/// Coefficients that minimise the squares of relative differences: the normal equations, by Gaussian elimination with pivots.
fn least_squares(terms: &[Term], points: &[(f64, f64)]) -> Vec<f64> {
    let count = terms.len();
    // Terms of large x are scaled, so that no pivot vanishes.
    let most = points.iter().map(|(x, _)| *x).fold(1.0, f64::max);
    let mut rows = vec![vec![0.0; count + 1]; count];
    for (x, time) in points {
        let values: Vec<f64> = terms.iter().map(|term| term.at(x / most) / time).collect();
        for (row, a) in rows.iter_mut().zip(&values) {
            for (sum, b) in row.iter_mut().zip(values.iter().chain([&1.0])) {
                *sum += a * b;
            }
        }
    }
    for column in 0..count {
        let pivot = (column..count)
            .max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()));
        rows.swap(column, pivot.unwrap_or(column));
        let top = rows[column].clone();
        for row in rows.iter_mut().enumerate().filter(|(at, _)| *at != column).map(|(_, row)| row) {
            let factor = row[column] / top[column];
            row.iter_mut().zip(&top).for_each(|(value, of_top)| *value -= factor * of_top);
        }
    }
    let scaled = |(at, term): (usize, &Term)| rows[at][count] / rows[at][at] / term.at(most);
    terms.iter().enumerate().map(scaled).collect()
}

#[cfg(test)]
mod tests {
    use super::{Fit, Term};

    const TERMS: [Term; 3] = [Term::Constant, Term::Linear, Term::Quadratic];

    fn points(time: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (5..16).map(|power| f64::from(1 << power)).map(|x| (x, time(x))).collect()
    }

    #[test]
    fn coefficients_are_found() {
        let time = |x: f64| 3e-3 + 2e-6 * x + 5e-11 * x * x;
        let points = points(time);
        let fit = Fit::new(&TERMS, &points);
        for point in &points {
            assert!(fit.difference(*point).abs() < 1e-9, "{fit:?} {point:?}");
        }
        assert!((fit.at(100_000.0) / time(100_000.0) - 1.0).abs() < 1e-9);
        assert_eq!(fit.text("n", 1e-3), "3.000e0 + 2.000e-3 × n + 5.000e-8 × n²");
        assert!(fit.steps(&points).is_empty());
    }

    #[test]
    fn negative_terms_are_left_out() {
        let falling = points(|x| 1.0 - 1e-6 * x);
        let fit = Fit::new(&TERMS, &falling);
        assert!(fit.at(1e9) <= 1.1, "{fit:?}");
        assert!(fit.difference(falling[0]).abs() < 0.05, "{fit:?}");
    }

    #[test]
    fn steps_are_reported_where_they_are() {
        let stepped = points(|x| 1e-3 + 1e-6 * x * if x > 2048.0 { 1.5 } else { 1.0 });
        let fit = Fit::new(&TERMS[..2], &stepped);
        assert!(fit.steps(&stepped).contains(&(2048.0, 4096.0)), "{:?}", fit.steps(&stepped));
        assert!(fit.steps(&stepped).len() <= 2);
    }
}
