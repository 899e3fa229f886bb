//! Real clients of npm and PyPI against `rullama serve` with the demo model.

use anyhow::{Result, bail};

use crate::{
    command::{root, say, sh, sh_with, target},
    serving::Serving,
    test::program,
};

/// Lists of packages that go together, and their tests.
const PYTHON: [(&str, &[&str]); 2] = [
    ("requirements.txt", &["test_clients.py", "test_langchain_standard.py"]),
    ("requirements-litellm.txt", &["test_litellm.py"]),
];

/// Installs the clients where they are missing, starts a server on the CPU and runs their tests.
pub(crate) fn clients(options: &[&str]) -> Result<()> {
    let (node, python) = match options {
        [] => (true, true),
        ["node"] => (true, false),
        ["python"] => (false, true),
        _ => bail!("usage: cargo xtask clients [node | python]"),
    };
    let models = [("embedder", "embedding/first-BF16.gguf")];
    let serving = Serving::start(&program()?, &models, &["--device", "cpu"])?;
    let url = [("RULLAMA_URL", serving.url.clone())];
    if node {
        let folder = root().join("clients/node");
        sh_with(&folder, &[], "npm", &["install", "--no-audit", "--no-fund"])?;
        sh_with(&folder, &url, "npm", &["test"])?;
    }
    if python {
        let folder = root().join("clients/python");
        for (list, tests) in PYTHON {
            let pytest = [&["-m", "pytest", "-q"], tests].concat();
            sh_with(&folder, &url, &installed(list)?, &pytest)?;
        }
    }
    say("all clients understand the server");
    Ok(())
}

/// A Python with the clients of a list, beside what cargo builds.
fn installed(list: &str) -> Result<String> {
    let place = target().join("clients").join(list.trim_end_matches(".txt"));
    let python = place.join("bin/python").display().to_string();
    if !place.is_dir() {
        sh("python3", &["-m", "venv", &place.display().to_string()])?;
    }
    let list = format!("clients/python/{list}");
    sh(&python, &["-m", "pip", "install", "-q", "-r", &list])?;
    Ok(python)
}
