//! `GET /v1/models`: one shape that satisfies both OpenAI's and Anthropic's clients.

use serde::Serialize;

use crate::Timestamp;

/// The list of models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelList {
    object: &'static str,
    data: Vec<ModelObject>,
    has_more: bool,
    first_id: Option<String>,
    last_id: Option<String>,
}

/// One model, also the response of `GET /v1/models/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelObject {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: String,
    #[serde(rename = "type")]
    kind: &'static str,
    display_name: String,
    created_at: Timestamp,
}

impl ModelObject {
    /// A model by its short name. `owner` is the namespace, such as `library`.
    pub fn new(id: impl Into<String>, owner: impl Into<String>, created: Timestamp) -> Self {
        let id = id.into();
        Self {
            object: "model",
            created: created.unix_seconds(),
            owned_by: owner.into(),
            kind: "model",
            display_name: id.clone(),
            created_at: created.whole_seconds(),
            id,
        }
    }
}

impl ModelList {
    /// The whole list on one page.
    pub fn new(data: Vec<ModelObject>) -> Self {
        Self {
            object: "list",
            has_more: false,
            first_id: data.first().map(|model| model.id.clone()),
            last_id: data.last().map(|model| model.id.clone()),
            data,
        }
    }
}
