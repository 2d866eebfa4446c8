// Filtering a list while the user types: every word must occur, in any order; case and accents are ignored.

const PLAIN = /^[\0-\x7f]*$/u;
const MARKS = /\p{M}/gu;

/**
 * Returns a text in the form in which texts are compared: lower case, without accents.
 * @param {string} text
 */
export function fold(text) {
  // Most texts are ASCII, which needs no normalization.
  return (PLAIN.test(text) ? text : text.normalize('NFD').replace(MARKS, '')).toLowerCase();
}

/**
 * Returns a test for folded texts, or null if nothing was typed and everything matches.
 * @param {string} typed
 * @returns {((folded: string) => boolean) | null}
 */
export function matcher(typed) {
  const words = fold(typed).split(/\s+/u).filter(Boolean);
  return words.length > 0 ? (folded) => words.every((word) => folded.includes(word)) : null;
}
