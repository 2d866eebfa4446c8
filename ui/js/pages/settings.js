// The page `/settings`: the settings of this browser, which take effect at once and in all tabs, and the simulated failures of the server.

/** @import { Setting } from '../components/setting.js' */
/** @import { Settings } from '../lib/settings.js' */

import * as notifications from '../lib/notifications.js';
import * as prefs from '../lib/prefs.js';
import * as settings from '../lib/settings.js';
import * as theme from '../lib/theme.js';
import { pageHead } from '../components/page-head.js';
import { choice, toggle } from '../components/setting.js';
import { fill, h } from '../lib/dom.js';
import { exact } from '../lib/format.js';
import { toast } from '../lib/feedback.js';
import { title } from '../lib/title.js';
import { TimeAgo } from '../components/time-ago.js';
import '../components/chaos-settings.js';

/** The events after which the page shows the values again. */
const EVENTS = ['restante:setting', 'restante:theme', 'restante:notices'];

/**
 * Creates a group of radio buttons for a setting of `settings.js`.
 * @template {'clock' | 'timeZone' | 'density' | 'defaultTab' | 'remoteContent'} K
 * @param {K} name
 * @param {{ label: string, description?: string, choices: [Settings[K], string][] }} texts
 */
function stored(name, { label, description, choices }) {
  return choice({
    name, label, description,
    choices: choices.map(([value, text]) => ({ value, label: text })),
    get: () => settings.get(name),
    set: (value) => settings.set(name, value),
  });
}

const appearance = () => [
  choice({
    name: 'theme', label: 'Theme', get: theme.chosen, set: theme.choose,
    choices: [{ value: 'system', label: 'System' }, { value: 'light', label: 'Light' }, { value: 'dark', label: 'Dark' }],
  }),
  stored('density', { label: 'Density', description: 'Compact shows more rows: there is less space between lines and around buttons.', choices: [['comfortable', 'Comfortable'], ['compact', 'Compact']] }),
];

const time = () => [
  stored('clock', { label: 'Clock', choices: [['system', 'System'], ['24', '24-hour'], ['12', '12-hour']] }),
  stored('timeZone', { label: 'Time zone', choices: [['local', 'Local'], ['utc', 'UTC']] }),
];

const messages = () => [
  stored('defaultTab', {
    label: 'Default tab',
    description: 'The tab that is selected when a message is opened. A message without that tab shows its first one.',
    choices: [['last', 'Last used'], ['html', 'HTML'], ['text', 'Text'], ['source', 'Source']],
  }),
  stored('remoteContent', {
    label: 'Remote content',
    description: 'Images and styles from other hosts. If they are always loaded, those hosts can see when you open a message, and from which IP address.',
    choices: [['ask', 'Ask for each message'], ['always', 'Always load']],
  }),
  toggle({
    name: 'openNewest', label: 'Open the newest message automatically',
    description: 'The inbox shows the newest message when you open it. The message is then marked as read.',
    get: () => settings.get('openNewest'), set: (isOn) => settings.set('openNewest', isOn),
  }),
];

/** @param {() => void} update */
const desktop = (update) => [
  toggle({
    name: 'notices', label: 'Desktop notifications of new messages',
    description: 'Shown while another window has the focus. The browser asks for permission. It allows them on HTTPS and on localhost only.',
    get: notifications.areEnabled,
    // The browser can refuse, so the checkbox shows the result.
    set: async () => {
      await notifications.toggle();
      update();
    },
  }),
];

export class SettingsPage extends HTMLElement {
  /** Aborted when the page is removed. */
  #disconnected = new AbortController();
  /** @type {Setting[]} */
  #settings = [];

  connectedCallback() {
    const { signal } = this.#disconnected = new AbortController();
    title('Settings');
    const now = h('p', { class: 'setting-note soft', 'data-example': 'time' }, 'Example: ', TimeAgo.create(Date.now(), exact));
    const groups = { appearance: appearance(), time: time(), messages: messages(), desktop: desktop(() => this.#update()) };
    this.#settings = Object.values(groups).flat();
    fill(this, h('div', { class: 'page settings' },
      pageHead('Settings', h('span', { class: 'spread' }), h('button', { class: 'button', type: 'button', onclick: reset }, 'Reset to defaults')),
      h('p', { class: 'soft' }, 'These settings are stored in this browser, except for the simulated failures, which belong to the server.'),
      section('Appearance', groups.appearance),
      section('Time', groups.time, now),
      section('Messages', groups.messages),
      section('Notifications', groups.desktop),
      h('section', { class: 'chaos' }, h('h2', {}, 'Simulated failures'),
        h('div', { class: 'sheet settings-group' }, h('p', { class: 'setting-note soft' }, 'The server refuses senders, recipients and logins at random, so that you can test how your application handles errors. This applies to all clients of the server.'), document.createElement('chaos-settings')))));
    for (const name of EVENTS) window.addEventListener(name, () => this.#update(), { signal });
    this.#update();
  }

  disconnectedCallback() {
    this.#disconnected.abort();
  }

  #update() {
    for (const setting of this.#settings) setting.update();
  }
}

/**
 * @param {string} heading
 * @param {Setting[]} group
 * @param {...Node} more
 */
function section(heading, group, ...more) {
  return h('section', {}, h('h2', {}, heading), h('div', { class: 'sheet settings-group' }, ...group.map(({ element }) => element), ...more));
}

/** Resets the settings of this browser. */
function reset() {
  settings.reset();
  theme.choose('system');
  prefs.write('notices', false);
  toast('All settings of this browser have their default values.');
}

customElements.define('settings-page', SettingsPage);
