//! Whether a file is to be saved or shown, from the query.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::extractors::parameters::{query_pairs, text_parameter};
use crate::response::links::Purpose;
use crate::response::problem::Problem;

/// The purpose of a file, from `?download=`.
#[derive(Debug)]
pub(crate) struct DownloadParameter(pub(crate) Purpose);

impl<S: Sync> FromRequestParts<S> for DownloadParameter {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        match text_parameter(&query_pairs(parts)?, "download")? {
            None | Some("false") => Ok(Self(Purpose::View)),
            Some("true") => Ok(Self(Purpose::Download)),
            Some(_) => Err(Problem::Malformed("The parameter download must be true or false.".to_owned())),
        }
    }
}
