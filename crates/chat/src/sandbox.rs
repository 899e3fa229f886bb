//! The door for templates found in model files.
