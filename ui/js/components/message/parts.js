// <message-parts>: what a message is made of: the tree of its MIME parts, and what is wrong with them.

/** @import { Message, Part } from '../../types.js' */

import { fill, h } from '../../lib/dom.js';
import { plural, size } from '../../lib/format.js';
import { visible } from '../../lib/visible.js';
import { SAVE_ONLY, ways } from './attached.js';
import { scroller } from './controls.js';
import { defectList } from './defects.js';
import { acrossTable, inSteps } from './steps.js';

const ROWS = 200;

/** Deeper ones stand no further to the right. */
const DEEPEST = 10;

/** @type {Record<string, string>} */
const ROLES = { multipart: 'Container', text: 'Text', html: 'HTML', attachment: 'Attachment' };

export class MessageParts extends HTMLElement {
  #message;

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#message = message;
  }

  connectedCallback() {
    if (this.firstChild) return;
    const { parts, defects } = this.#message;
    const titles = ['Part', 'Use', 'Encoding', 'Charset', 'Disposition', 'Size'].map((title) => h('th', { scope: 'col' }, title));
    const rows = h('tbody', {}, inSteps(parts, (part) => this.#row(part), { first: ROWS, place: acrossTable(titles.length) }));
    const body = scroller('Parts', 'message-parts');
    fill(body,
      h('table', {}, h('caption', { class: 'hidden' }, 'The parts of the mail'), h('thead', {}, h('tr', {}, titles)), rows),
      h('section', { class: 'part-defects' }, h('h3', {}, defects.length > 0 ? plural(defects.length, 'problem') : 'No problems'), defects.length > 0 ? defectList(defects) : h('p', { class: 'soft' }, 'This mail is well formed.')));
    fill(this, body);
  }

  /** @param {Part} part */
  #row(part) {
    const name = part.filename !== null && h('bdi', { class: 'part-name' }, visible(part.filename));
    const id = part['content-id'] !== null && h('bdi', { class: 'mono' }, `cid:${visible(part['content-id'])}`);
    const first = h('td', { class: 'part-type' },
      h('span', { class: 'hidden' }, `Level ${part.depth + 1}: `),
      h('bdi', { class: 'mono' }, visible(part['content-type'])),
      (name || id || part.attachment !== null) && h('div', { class: 'part-more' }, name, id, this.#links(part)));
    const facts = [ROLES[part.role] ?? part.role, part.encoding, part.charset, part.disposition].map((fact) => h('td', {}, fact === null ? h('span', { class: 'soft none' }, '–') : h('bdi', {}, visible(fact))));
    const row = h('tr', {}, first, facts, h('td', { class: 'number' }, size(part.size)));
    row.style.setProperty('--depth', String(Math.min(part.depth, DEEPEST)));
    return row;
  }

  /** @param {Part} part */
  #links({ attachment: index }) {
    const attachment = this.#message.attachments.find((one) => one.index === index);
    if (!attachment) return null;
    const { look, save, mayOpen } = ways(this.#message, attachment);
    return h('span', { class: 'part-links' },
      mayOpen && h('a', { href: look, target: '_blank', rel: 'noopener noreferrer' }, 'Open'),
      h('a', { href: save, download: true, title: mayOpen ? null : SAVE_ONLY }, 'Download'));
  }
}

customElements.define('message-parts', MessageParts);
