// <message-links>: the links of a message, each with the words that lead there, its address in full, and where it was found.

/** @import { Link, Message } from '../../types.js' */

import * as api from '../../lib/api.js';
import { copy } from '../../lib/clipboard.js';
import { fill, h } from '../../lib/dom.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import { AskedPanel } from './asked.js';
import { scroller } from './controls.js';
import { isLink } from './links.js';
import { inSteps } from './steps.js';

const ROWS = 100;

/** Of a longer address the beginning is shown; it is copied in full. */
const LONG = 2_000;

/** @type {Record<Link['where'], string>} */
const PLACES = { html: 'HTML', text: 'Text', header: 'Header' };

/** @extends {AskedPanel<Link[]>} */
export class MessageLinks extends AskedPanel {
  /** @param {Message} message */
  constructor({ mailbox, id }) {
    super((signal) => api.links(mailbox, id, signal), draw);
  }
}

/** @param {Link[]} links */
function draw(links) {
  if (links.length === 0) return [h('div', { class: 'empty' }, icon('open'), h('h2', {}, 'No links'), h('p', {}, 'Neither the text nor the HTML nor the headers of this mail have one.'))];
  const place = (/** @type {HTMLButtonElement} */ button) => h('li', { class: 'panel-end' }, button);
  const body = scroller('Links', 'message-links');
  fill(body, h('ul', {}, inSteps(links, row, { first: ROWS, place })));
  return [body];
}

/** @param {Link} link */
function row({ href, text, 'image-alt': alt, where, kind }) {
  const words = visible(text).trim() || (alt !== null && visible(alt).trim() && `Picture: ${visible(alt).trim()}`) || '';
  const shown = visible(href.length > LONG ? `${href.slice(0, LONG)}…` : href);
  const mayFollow = kind !== 'other' && isLink(href);
  const address = mayFollow
    ? h('a', { class: 'mono', href, target: '_blank', rel: 'noopener noreferrer' }, h('bdi', {}, shown))
    : h('bdi', { class: 'mono soft', title: 'Not to be followed: an address of this kind may do anything.' }, shown);
  return h('li', { class: 'link' },
    h('div', { class: 'link-words' }, words && words !== shown && h('bdi', { class: 'link-text' }, words), address),
    h('span', { class: 'badge' }, PLACES[where] ?? where),
    h('button', { class: 'button plain small', type: 'button', 'aria-label': `Copy the address ${shown}`, title: 'Copy the address', onclick: () => copy(href, 'Address copied') }, icon('copy')));
}

customElements.define('message-links', MessageLinks);
