use super::{Form, Matmul};
use crate::{
    cpu::Data,
    graph::{Graph, Type},
    suite::{Case, Tolerance},
};

const FORMS: [Form; 3] = [Form::Nt, Form::Nn, Form::Tn];

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (m, n, k) in [(1, 1, 1), (3, 17, 5), (33, 18, 70), (1, 16, 257), (257, 3, 16)] {
        for form in FORMS {
            cases.push(matmul(form, [m, n, k], false));
            cases.push(matmul(form, [m, n, k], true));
        }
    }
    // Long sums are split over workgroups; the last case has few results and is not split.
    for form in [Form::Nn, Form::Tn, Form::Nt] {
        cases.push(matmul(form, [17, 16, 1100], false));
    }
    // Shapes of the gradients of LoRA pairs of rank 16.
    cases.push(matmul(Form::Nn, [512, 16, 12_288], false).bench());
    cases.push(matmul(Form::Tn, [16, 1536, 512], false).bench());
    cases.push(matmul(Form::Tn, [12_288, 16, 512], false).bench());
    cases.push(matmul(Form::Nn, [512, 12_288, 16], false).bench());
    for form in FORMS {
        cases.push(matmul(form, [2, 3, 4], true).gradient());
        // a = [[1, 2], [3, 4]], b = [[5, 6], [7, 8]]
        let wanted = match form {
            Form::Nt => [17.0, 23.0, 39.0, 53.0],
            Form::Nn => [19.0, 22.0, 43.0, 50.0],
            Form::Tn => [26.0, 30.0, 38.0, 44.0],
        };
        let wanted = wanted.map(|y| y * -0.5);
        let case = matmul(form, [2, 2, 2], false)
            .given("a", Data::F32(vec![1.0, 2.0, 3.0, 4.0]))
            .given("b", Data::F32(vec![5.0, 6.0, 7.0, 8.0]));
        cases.push(case.gives(&wanted));
    }
    cases
}

fn matmul(form: Form, [m, n, k]: [usize; 3], based: bool) -> Case {
    let name = format!("{form:?} {m}x{n} over {k}{}", if based { " on a base" } else { "" });
    let build = move |g: &mut Graph| {
        let (a, b) = match form {
            Form::Nt => ([m, k], [n, k]),
            Form::Nn => ([m, k], [k, n]),
            Form::Tn => ([k, m], [k, n]),
        };
        let (a, b) = (g.input("a", Type::f32(a)), g.input("b", Type::f32(b)));
        let base = based.then(|| g.input("base", Type::f32([m, n])));
        vec![g.matmul(Matmul { form, scale: -0.5 }, a, b, base)]
    };
    Case::new("matmul", name, build).tolerance(Tolerance::ARITHMETIC.terms(k))
}
