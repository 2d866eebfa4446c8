// <message-parts>: what a message is made of: the tree of its MIME parts, and what is wrong with them.

/** @import { Message, Part } from '../../types.js' */

import * as paths from '../../lib/paths.js';
import { fill, h } from '../../lib/dom.js';
import { plural, size } from '../../lib/format.js';
import { visible } from '../../lib/visible.js';
import { SAVE_ONLY, mayOpen, ways } from './attached.js';
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
    const rows = h('tbody', {}, inSteps([...parts.entries()], ([index, part]) => this.#row(part, index), { first: ROWS, place: acrossTable(titles.length) }));
    const body = scroller('Parts', 'message-parts');
    fill(body,
      h('table', {}, h('caption', { class: 'hidden' }, 'The parts of the mail'), h('thead', {}, h('tr', {}, titles)), rows),
      h('section', { class: 'part-defects' }, h('h3', {}, defects.length > 0 ? plural(defects.length, 'problem') : 'No problems'), defects.length > 0 ? defectList(defects) : h('p', { class: 'soft' }, 'This mail is well formed.')));
    fill(this, body);
  }

  /**
   * @param {Part} part
   * @param {number} index
   */
  #row(part, index) {
    const name = part.filename !== null && h('bdi', { class: 'part-name' }, visible(part.filename));
    const id = part['content-id'] !== null && h('bdi', { class: 'mono' }, `cid:${visible(part['content-id'])}`);
    const first = h('td', { class: 'part-type' },
      h('span', { class: 'hidden' }, `Level ${part.depth + 1}: `),
      h('bdi', { class: 'mono' }, visible(part['content-type'])),
      h('div', { class: 'part-more' }, name, id, this.#links(part, index)));
    const facts = [ROLES[part.role] ?? part.role, part.encoding, part.charset, part.disposition].map((fact) => h('td', {}, fact === null ? h('span', { class: 'soft none' }, '–') : h('bdi', {}, visible(fact))));
    const row = h('tr', {}, first, facts, h('td', { class: 'number' }, size(part.size)));
    row.style.setProperty('--depth', String(Math.min(part.depth, DEEPEST)));
    return row;
  }

  /**
   * The ways to what a part holds. An attachment has a name, and what it is saved as; what else there is has a number.
   * @param {Part} part
   * @param {number} index
   */
  #links(part, index) {
    const { mailbox, id, attachments } = this.#message;
    const attachment = attachments.find((one) => one.index === part.attachment);
    const there = paths.part(mailbox, id, index);
    const { look, save, mayOpen: isOpenable } = attachment ? ways(this.#message, attachment) : { look: there, save: there, mayOpen: mayOpen(part) };
    // No browser shows a container.
    const isShown = isOpenable && part.role !== 'multipart';
    const name = visible(part.filename ?? `part ${index}`);
    return h('span', { class: 'part-links' },
      isShown && h('a', { href: look, target: '_blank', rel: 'noopener noreferrer', 'aria-label': `Open ${name}` }, 'Open'),
      h('a', { href: save, download: attachment ? true : `part-${index}`, title: isOpenable ? null : SAVE_ONLY, 'aria-label': `Download ${name}` }, 'Download'));
  }
}

customElements.define('message-parts', MessageParts);
