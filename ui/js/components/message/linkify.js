// Finds the links in a text in one pass.

import { h } from '../../lib/dom.js';

/** Possible links; each is validated afterwards. */
const CANDIDATE = /\b(?:https?:\/\/|mailto:)[^\s<>"\u0000-\u001f]+/giu;

const SCHEMES = ['http:', 'https:', 'mailto:'];

/** Punctuation that ends a sentence rather than a URL. */
const TRAILING_PUNCTUATION = '.,;:!?\'*_~';

/** @type {Record<string, string>} */
const OPENING = { ')': '(', ']': '[', '}': '{' };

/**
 * Returns the text as nodes with links. Links after the first `max` stay text.
 * @param {string} text
 * @param {number} max
 * @returns {{ nodes: (HTMLAnchorElement | string)[], links: number }}
 */
export function linkify(text, max) {
  /** @type {(HTMLAnchorElement | string)[]} */
  const nodes = [];
  let links = 0;
  let done = 0;
  for (const { 0: candidate, index } of text.matchAll(CANDIDATE)) {
    if (links === max) break;
    const address = trimmed(candidate);
    if (!isLink(address)) continue;
    nodes.push(text.slice(done, index), h('a', { href: address, target: '_blank', rel: 'noopener noreferrer' }, address));
    done = index + address.length;
    links += 1;
  }
  nodes.push(text.slice(done));
  return { nodes, links };
}

/**
 * Removes trailing punctuation of the sentence: `(see https://example.org/).`
 * @param {string} candidate
 */
function trimmed(candidate) {
  /** @type {Record<string, number>} */
  const seen = {};
  for (const char of candidate) seen[char] = (seen[char] ?? 0) + 1;
  let end = candidate.length;
  for (; end > 0; end -= 1) {
    const last = candidate[end - 1];
    const opening = OPENING[last];
    const isUnmatched = opening !== undefined && seen[last] > (seen[opening] ?? 0);
    if (!TRAILING_PUNCTUATION.includes(last) && !isUnmatched) break;
    seen[last] -= 1;
  }
  return candidate.slice(0, end);
}

/**
 * Returns whether this is a URL that may be opened.
 * @param {string} address
 */
export function isLink(address) {
  const url = URL.canParse(address) ? new URL(address) : null;
  return url !== null && SCHEMES.includes(url.protocol) && (url.host !== '' || url.pathname !== '');
}
