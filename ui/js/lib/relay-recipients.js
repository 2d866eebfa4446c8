// Recipients of a release: the field in which they are edited, and which of them a target allows. The server decides; this is a
// hint before the request.

/** @import { RelayTarget } from '../types.js' */

/** An address: text without a separator, which is the end of a line, a comma or a semicolon. In quotes, the latter two separate nothing. */
const ADDRESS = /(?:"(?:\\.|[^"\\\n])*"|[^,;\n])+/gu;

/**
 * Returns the addresses of a text. Each address is returned once.
 * @param {string} text
 */
export function splitAddresses(text) {
  const parts = text.match(ADDRESS) ?? [];
  return [...new Set(parts.map((part) => part.trim()).filter((part) => part !== ''))];
}

/**
 * Returns whether a target allows a recipient. Null if only the server can decide, because a pattern is a regular expression.
 * @param {RelayTarget} target
 * @param {string} address
 * @returns {boolean | null}
 */
export function isAllowed({ allowed, blocked }, address) {
  const isBlocked = matchesAny(blocked, address);
  if (isBlocked) return false;
  const isListed = matchesAny(allowed, address);
  return isListed === false || isBlocked === false ? isListed : null;
}

/**
 * Returns whether any pattern matches. Null if that depends on a regular expression.
 * @param {string[]} patterns
 * @param {string} address
 * @returns {boolean | null}
 */
function matchesAny(patterns, address) {
  if (patterns.some((pattern) => !isExpression(pattern) && matches(pattern.toLowerCase(), address.toLowerCase()))) return true;
  return patterns.some(isExpression) ? null : false;
}

/** @param {string} pattern */
const isExpression = (pattern) => pattern.length > 1 && pattern.startsWith('/') && pattern.endsWith('/');

/**
 * Returns whether a pattern matches the whole text; `*` and `?` are wildcards. After a mismatch only the last `*` is tried again,
 * so the time is at most the product of both lengths.
 * @param {string} pattern
 * @param {string} text
 */
function matches(pattern, text) {
  let [at, position, star, resume] = [0, 0, -1, 0];
  while (position < text.length) {
    if (pattern[at] === '*') {
      star = at;
      resume = position;
      at += 1;
    } else if (at < pattern.length && (pattern[at] === '?' || pattern[at] === text[position])) {
      at += 1;
      position += 1;
    } else if (star >= 0) {
      at = star + 1;
      resume += 1;
      position = resume;
    } else {
      return false;
    }
  }
  return /^\**$/u.test(pattern.slice(at));
}
