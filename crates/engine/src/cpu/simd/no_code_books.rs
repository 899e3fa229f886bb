//! In place of `code_books.rs` in modules that pages fetch: they have no kernels for formats with code books or ternary levels, since models small
//! enough for a CPU in a page lose too much by them. They are decoded by their definition.

/// Always `$other`.
macro_rules! with_code_book_format {
    ($dtype:expr, $format:ident => $body:expr, $other:expr) => {{
        let _ = $dtype;
        $other
    }};
}
pub(super) use with_code_book_format;
