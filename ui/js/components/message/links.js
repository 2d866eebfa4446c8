// Finding the links in a text, in one pass over it.

import { h } from '../../lib/dom.js';

/** Where a link may begin and how far it may reach; what is no address after all is seen later. */
const CANDIDATE = /\b(?:https?:\/\/|mailto:)[^\s<>"\u0000-\u001f]+/giu;

const SCHEMES = ['http:', 'https:', 'mailto:'];

/** What ends a sentence rather than an address. */
const ENDS = '.,;:!?\'*_~';

/** @type {Record<string, string>} */
const OPENING = { ')': '(', ']': '[', '}': '{' };

/**
 * The text with its links, as nodes. After `most` links the rest stays text.
 * @param {string} text
 * @param {number} most
 * @returns {{ nodes: (HTMLAnchorElement | string)[], links: number }}
 */
export function linked(text, most) {
  /** @type {(HTMLAnchorElement | string)[]} */
  const nodes = [];
  let links = 0;
  let done = 0;
  for (const { 0: candidate, index } of text.matchAll(CANDIDATE)) {
    if (links === most) break;
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
 * Without what belongs to the sentence around it: `(see https://example.org/).`
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
    const alone = opening !== undefined && seen[last] > (seen[opening] ?? 0);
    if (!ENDS.includes(last) && !alone) break;
    seen[last] -= 1;
  }
  return candidate.slice(0, end);
}

/**
 * Whether this is an address that may be followed.
 * @param {string} address
 */
export function isLink(address) {
  const url = URL.canParse(address) ? new URL(address) : null;
  return url !== null && SCHEMES.includes(url.protocol) && (url.host !== '' || url.pathname !== '');
}
