//! The commands against a server that is made up: whatever the API promises, also what no real server can be brought to say
//! at will. Conversations with the real one are in the tests of the program.

mod fake;
mod found;
mod sent;
mod trouble;
