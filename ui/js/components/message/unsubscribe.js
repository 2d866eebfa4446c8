// <unsubscribe-check>: whether readers can unsubscribe from the list of a message, for messages with List-Unsubscribe.

/** @import { Message, Unsubscribe } from '../../types.js' */

import * as api from '../../lib/api.js';
import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';

/** The maximum number of links that are shown. */
const MAX_LINKS = 10;

const FIELDS = ['list-unsubscribe', 'list-unsubscribe-post'];

/** @param {Message} message */
export const hasUnsubscribe = ({ headers }) => headers.some(({ name }) => FIELDS.includes(name.toLowerCase()));

export class UnsubscribeCheck extends HTMLElement {
  #message;
  #request = new AbortController();

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#message = message;
  }

  connectedCallback() {
    if (!this.firstChild) this.#load();
  }

  disconnectedCallback() {
    this.#request.abort();
  }

  async #load() {
    const { signal } = this.#request = new AbortController();
    // The line has its final height, so that the layout does not move.
    fill(this, h('p', { class: 'soft' }, 'Unsubscribe: checking…'));
    try {
      const found = await api.unsubscribe(this.#message.id, signal);
      if (!signal.aborted) fill(this, result(found, problems(this.#message, found)));
    } catch (error) {
      if (!signal.aborted) fill(this, h('p', { class: 'soft' }, `Unsubscribe: ${api.sentence(error)}`));
    }
  }
}

/**
 * Returns what prevents a one-click unsubscription (RFC 8058), in sentences.
 * @param {Message} message
 * @param {Unsubscribe} found
 */
export function problems({ headers }, { 'one-click': isOneClick, links }) {
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

/**
 * @param {Unsubscribe} found
 * @param {string[]} problems
 */
function result({ 'one-click': isOneClick, links, 'list-id': list }, problems) {
  const isGood = isOneClick && problems.length === 0;
  const words = isGood ? 'one-click (RFC 8058)' : isOneClick ? 'one-click with problems' : 'no one-click (RFC 8058)';
  const rows = links.slice(0, MAX_LINKS).map(({ href, kind }) => h('li', {}, h('span', { class: 'badge' }, kind), h('bdi', { class: 'mono' }, visible(href)),
    h('button', { class: 'button plain small', type: 'button', 'aria-label': `Copy the link ${visible(href)}`, title: 'Copy the link', onclick: () => copy(href, 'Link copied') }, icon('copy'))));
  return h('details', { class: isGood ? 'unsubscribe good' : 'unsubscribe bad' },
    h('summary', {}, icon(isGood ? 'check' : 'warning'), h('span', {}, 'Unsubscribe: ', h('b', {}, words))),
    h('ul', { class: 'unsubscribe-facts' }, problems.map((problem) => h('li', {}, problem)), rows, list !== null && h('li', {}, 'List: ', h('bdi', {}, visible(list)))));
}

customElements.define('unsubscribe-check', UnsubscribeCheck);
