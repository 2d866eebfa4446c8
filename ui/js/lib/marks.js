// Marks the words of a query in a subject, as the server marks them in the text of a message: a word of the query matches the beginning
// of words, a phrase matches whole words.

import { h } from './dom.js';
import { fold } from './filter.js';
import { terms } from './filters.js';

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
/** Terms without a field, and those of the subject. Terms of other fields and excluded terms do not match here. */
const OF_SUBJECT = /^(?:subject:)?(?<text>[^\s:()-][^:()]*)$/iu;

/**
 * Returns a function that splits a text into strings and marked words.
 * @param {string} query
 * @returns {(text: string) => (string | Node)[]}
 */
export function marker(query) {
  const patterns = terms(query.replace(/[()]/gu, ' ')).flatMap((term) => patternOf(term) ?? []);
  return patterns.length === 0 ? (text) => [text] : (text) => mark(text, patterns);
}

/**
 * The words of a term, and whether the last one matches the beginning of a word.
 * @typedef {{ words: string[], isPrefix: boolean }} Pattern
 */

/**
 * @param {string} term
 * @returns {Pattern | null}
 */
function patternOf(term) {
  const text = OF_SUBJECT.exec(term)?.groups?.text;
  if (text === undefined || text.toLowerCase() === 'or') return null;
  const words = fold(text).match(WORD) ?? [];
  return words.length === 0 ? null : { words, isPrefix: !text.includes('"') };
}

/**
 * @param {string} text
 * @param {Pattern[]} patterns
 */
function mark(text, patterns) {
  const found = [...text.matchAll(WORD)].map(({ 0: word, index }) => ({ word: fold(word), start: index, end: index + word.length }));
  /** @type {(string | Node)[]} */
  const parts = [];
  let end = 0;
  for (let at = 0; at < found.length; ) {
    const length = Math.max(0, ...patterns.filter((pattern) => matches(found, at, pattern)).map(({ words }) => words.length));
    if (length > 0) {
      const last = found[at + length - 1];
      parts.push(text.slice(end, found[at].start), h('mark', {}, text.slice(found[at].start, last.end)));
      end = last.end;
    }
    at += Math.max(1, length);
  }
  return [...parts, text.slice(end)];
}

/**
 * Returns whether the words at an index match.
 * @param {{ word: string }[]} found
 * @param {number} at
 * @param {Pattern} pattern
 */
function matches(found, at, { words, isPrefix }) {
  return words.every((word, index) => {
    const other = found[at + index]?.word;
    return other === word || (isPrefix && index === words.length - 1 && other?.startsWith(word));
  });
}
