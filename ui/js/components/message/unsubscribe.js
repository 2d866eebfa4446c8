// Whether readers can unsubscribe from the list of a message, for messages with List-Unsubscribe.

/** @import { Message } from '../../types.js' */

import { copy } from '../../lib/clipboard.js';
import { h } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';

/** The maximum number of links that are shown. */
const MAX_LINKS = 10;

const FIELDS = ['list-unsubscribe', 'list-unsubscribe-post'];

/**
 * Returns the result, or null if the message has no such field.
 * @param {Message} message
 */
export function unsubscribeCheck(message) {
  if (!message.headers.some(({ name }) => FIELDS.includes(name.toLowerCase()))) return null;
  const { 'one-click': isOneClick, links, 'list-id': list } = message.unsubscribe;
  const found = problems(message);
  const isGood = isOneClick && found.length === 0;
  const words = isGood ? 'one-click' : isOneClick ? 'one-click with problems' : 'no one-click';
  const rows = links.slice(0, MAX_LINKS).map(({ href, kind }) => h('li', {}, h('span', { class: 'badge' }, kind), h('bdi', { class: 'mono' }, visible(href)),
    h('button', { class: 'button plain small', type: 'button', 'aria-label': `Copy the link ${visible(href)}`, title: 'Copy the link', onclick: () => copy(href, 'Link copied') }, icon('copy'))));
  return h('details', { class: isGood ? 'message-helper unsubscribe good' : 'message-helper unsubscribe bad' },
    h('summary', { title: 'One-click unsubscription (RFC 8058)' }, icon(isGood ? 'check' : 'warning'), h('span', {}, 'Unsubscribe: ', h('b', {}, words))),
    h('ul', { class: 'unsubscribe-facts' }, found.map((problem) => h('li', {}, problem)), rows, list !== null && h('li', {}, 'List: ', h('bdi', {}, visible(list)))));
}

/**
 * Returns what prevents a one-click unsubscription (RFC 8058), in sentences.
 * @param {Message} message
 */
function problems({ headers, unsubscribe: { 'one-click': isOneClick, links } }) {
  const values = (/** @type {string} */ wanted) => headers.filter(({ name }) => name.toLowerCase() === wanted).map(({ value }) => value);
  const found = [];
  if (links.length === 0) found.push('List-Unsubscribe contains no usable link.');
  else if (!links.some(({ kind }) => kind === 'https')) found.push('There is no https link, which one-click needs.');
  if (!isOneClick && values('list-unsubscribe-post').length === 0) found.push('The field List-Unsubscribe-Post is missing.');
  else if (!isOneClick && links.some(({ kind }) => kind === 'https')) found.push('List-Unsubscribe-Post must be “List-Unsubscribe=One-Click”.');
  const signatures = values('dkim-signature');
  if (signatures.length > 0 && !signatures.some(covers)) found.push('No DKIM signature covers List-Unsubscribe and List-Unsubscribe-Post.');
  return found;
}

/**
 * Returns whether a DKIM signature names both fields (RFC 6376 section 3.5).
 * @param {string} signature
 */
function covers(signature) {
  const tag = signature.split(';').map((one) => one.trim()).find((one) => /^h\s*=/u.test(one));
  const names = (tag?.slice(tag.indexOf('=') + 1) ?? '').split(':').map((name) => name.trim().toLowerCase());
  return FIELDS.every((name) => names.includes(name));
}
