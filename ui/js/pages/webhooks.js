// The page `/webhooks`: the targets of webhooks, which can be paused, and the entries of their queue.

/** @import { WebhookEntry, WebhookTarget } from '../types.js' */

import * as api from '../lib/api.js';
import { h } from '../lib/dom.js';
import { toast } from '../lib/feedback.js';
import { clock } from '../lib/format.js';
import { visible } from '../lib/visible.js';
import { QueuePage } from '../components/queue-page.js';
import { WEBHOOK_ENTRY, webhooks } from '../components/webhook-entry.js';

/** @extends {QueuePage<WebhookTarget, WebhookEntry>} */
export class WebhooksPage extends QueuePage {
  constructor() {
    super({
      page: 'webhooks',
      title: 'Webhooks',
      about: 'HTTP requests that this server sends to other programs when a message is stored or deleted.',
      entry: WEBHOOK_ENTRY,
      target: describeTarget,
      noun: ['event', 'events'],
      retryText: 'All queued, failed and cancelled events are sent now, unless their target is paused.',
      hiddenText: 'This server does not show the events of all mailboxes.',
      notConfigured: ['Webhooks are not configured', h('span', {}, 'To send a request to another program for every message, configure a target with the setting ', h('code', {}, 'webhook.urls'), '.')],
      nothingText: 'An event is sent when a message is stored or deleted.',
    });
  }
}

/** @param {WebhookTarget} target */
function describeTarget({ name, url, filters, state, 'next-attempt': next }) {
  const isPaused = state === 'paused';
  const verb = isPaused ? 'Resume' : 'Pause';
  return {
    address: url,
    state: state === 'failing' && next !== null ? `failing, next attempt at ${clock(Date.parse(next))}` : state,
    lines: filters.map(({ events, mailboxes }) => `Events: ${events.join(', ')}${mailboxes.length > 0 ? ` in ${mailboxes.join(', ')}` : ''}`),
    action: h('button', { class: 'button small', type: 'button', 'aria-label': `${verb} ${visible(name)}`, onclick: () => setPaused(name, !isPaused) }, verb),
  };
}

/**
 * @param {string} name
 * @param {boolean} isPaused
 */
async function setPaused(name, isPaused) {
  try {
    await webhooks.setPaused(name, isPaused);
  } catch (error) {
    toast(api.sentence(error), { bad: true });
  }
}

customElements.define('webhooks-page', WebhooksPage);
