// <message-session>: what was said when a message came, by the program that sent it and by the server.

/** @import { Message, Transcript } from '../../types.js' */

import * as api from '../../lib/api.js';
import * as paths from '../../lib/paths.js';
import { fill, h } from '../../lib/dom.js';
import { transcript } from '../transcript.js';
import { AskedPanel } from './asked.js';
import { scroller } from './controls.js';

/** @extends {AskedPanel<Transcript>} */
export class MessageSession extends AskedPanel {
  /** @param {Message} message */
  constructor({ mailbox, id }) {
    super((signal) => api.transcript(mailbox, id, signal), draw);
  }
}

/** @param {Transcript} told */
function draw(told) {
  const body = scroller('Session', 'message-session');
  fill(body, transcript(told), h('p', { class: 'panel-end' }, h('a', { class: 'to-sessions', href: paths.sessions({ id: told.session.id }) }, 'The whole session')));
  return [body];
}

customElements.define('message-session', MessageSession);
