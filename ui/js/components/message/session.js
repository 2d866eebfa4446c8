// <message-session>: the transcript of the SMTP session that delivered a message.

/** @import { Message, Transcript } from '../../types.js' */

import * as api from '../../lib/api.js';
import * as paths from '../../lib/paths.js';
import { fill, h } from '../../lib/dom.js';
import { transcript } from '../transcript.js';
import { LazyPanel } from './lazy-panel.js';
import { scroller } from './controls.js';

/** @extends {LazyPanel<Transcript>} */
export class MessageSession extends LazyPanel {
  /** @param {Message} message */
  constructor({ id }) {
    super((signal) => api.transcript(id, signal), draw);
  }
}

/** @param {Transcript} transcriptData */
function draw(transcriptData) {
  const body = scroller('Session', 'message-session');
  fill(body, transcript(transcriptData), h('p', { class: 'panel-end' }, h('a', { class: 'to-sessions', href: paths.sessions({ id: transcriptData.session.id }) }, 'Show this session')));
  return [body];
}

customElements.define('message-session', MessageSession);
