// The types of the server's JSON responses, for the type checker. This module contains no code.

/**
 * A message in a list. In the list of a mailbox, a copy of a message.
 * @typedef {object} Summary
 * @property {string} id
 * @property {string} from
 * @property {string[]} to
 * @property {string[]} cc
 * @property {string[]} recipients The recipients of the envelope.
 * @property {string[]} mailboxes The mailboxes that contain a copy.
 * @property {string} subject
 * @property {string} snippet The first words of the text.
 * @property {string} received
 * @property {number} size
 * @property {number} attachments
 * @property {boolean} seen
 * @property {string[]} tags
 * @property {{ text: string, hit: boolean }[]} [excerpt] The words around the matches of a query.
 */

/**
 * A page of a list of messages.
 * @typedef {object} SummaryPage
 * @property {Summary[]} messages Newest first.
 * @property {string | null} next The cursor of the next page, or null.
 * @property {string} [mailbox] The server's name of the mailbox.
 * @property {boolean} [complete] For a query: false if the index does not contain all messages yet.
 */

/** @typedef {{ messages: number | null, copies: number, bytes: number, mailboxes: number }} Usage */

/**
 * A copy of a message, as the REST API of version 1 lists it.
 * @typedef {object} CopyRecord
 * @property {string} mailbox
 * @property {string} id
 * @property {string} from
 * @property {string[]} to
 * @property {string} subject
 * @property {string} date
 * @property {number} posix-millis
 * @property {number} size
 * @property {boolean} seen
 */

/**
 * @typedef {object} MessageParts
 * @property {string} text
 * @property {boolean} html True if the message has HTML.
 * @property {string[]} remote The hosts from which the HTML loads remote content.
 * @property {Header[]} headers
 * @property {Attachment[]} attachments
 * @property {Part[]} parts
 * @property {Defect[]} defects
 * @property {Code | null} code The one-time code, if a probable one was found.
 * @property {Link | null} main-link
 * @property {Unsubscribe} unsubscribe
 * @typedef {CopyRecord & MessageParts} Message
 */

/**
 * A message that is shown: its content and what was loaded by separate requests, which is null if there is none or it could not be
 * loaded. `id` is the id by which it was requested: that of the message or of a copy.
 * @typedef {Message & { copy: string, whole: Whole | null, relay: RelayEntryPage | null }} ShownMessage
 */

/**
 * The envelope, the tags and the copies of a message.
 * @typedef {object} Whole
 * @property {string} id
 * @property {string} [from]
 * @property {string[]} to
 * @property {string[]} cc
 * @property {string[]} recipients The recipients of the envelope.
 * @property {string[]} mailboxes
 * @property {string[]} tags
 * @property {string | null} sender The sender of the envelope. Null if it is not loaded.
 * @property {Copy[]} copies
 */

/** @typedef {{ mailbox: string, id: string, seen: boolean, tags: string[], recipients?: string[] }} Copy */

/** @typedef {{ name: string, value: string, decoded?: string }} Header */

/**
 * @typedef {object} Attachment
 * @property {number} index
 * @property {string} filename
 * @property {string} content-type
 * @property {number} size
 * @property {string} md5
 * @property {string | null} content-id
 * @property {boolean} [inline] True if the HTML shows it.
 */

/**
 * @typedef {object} Part
 * @property {number} depth
 * @property {string} content-type
 * @property {string | null} charset
 * @property {string} encoding
 * @property {'inline' | 'attachment' | null} disposition
 * @property {string | null} filename
 * @property {string | null} content-id
 * @property {number} size
 * @property {'multipart' | 'text' | 'html' | 'attachment'} role
 * @property {number | null} attachment
 */

/** @typedef {{ name: string, detail: string, severe: boolean }} Defect */

/**
 * A possible one-time code and the words around it.
 * @typedef {object} Code
 * @property {string} code
 * @property {number} score From 0 to 1.
 * @property {string} before
 * @property {string} after
 * @property {'header' | 'subject' | 'text' | 'html'} where
 * @property {string} [origin] The origin that the header field OTP-Token declares for its code.
 */

/**
 * @typedef {object} Link
 * @property {string} href
 * @property {string} text
 * @property {string | null} image-alt
 * @property {'html' | 'text' | 'header'} where
 * @property {'http' | 'mailto' | 'other'} kind
 * @property {boolean} [main] True if the message asks to follow this link.
 */

/**
 * @typedef {object} Unsubscribe
 * @property {boolean} one-click
 * @property {{ href: string, kind: 'https' | 'http' | 'mailto' }[]} links
 * @property {string | null} list-id
 */

/**
 * Percentages of support in mail clients.
 * @typedef {object} HtmlCheckScore
 * @property {number} supported
 * @property {number} partial
 * @property {number} unsupported
 */

/**
 * A feature of HTML or CSS that a message uses.
 * @typedef {object} HtmlCheckFeature
 * @property {string} slug
 * @property {string} title
 * @property {string} category
 * @property {string | null} url
 * @property {number} count
 * @property {number[]} lines
 * @property {HtmlCheckScore} score
 * @property {{ family: string, platform: string, version: string, support: 'yes' | 'partial' | 'no' | 'unknown', note: number | null }[]} clients
 */

/**
 * Which mail clients support the HTML of a message.
 * @typedef {object} HtmlCheck
 * @property {HtmlCheckScore} score
 * @property {number} elements
 * @property {boolean} truncated
 * @property {string} data-date
 * @property {HtmlCheckFeature[]} features
 * @property {{ family: string, 'family-name': string, platform: string, 'platform-name': string, supported: number, partial: number, unsupported: number }[]} clients
 */

/**
 * An SMTP or LMTP session.
 * @typedef {object} Session
 * @property {string} id
 * @property {'smtp' | 'lmtp' | 'http'} protocol
 * @property {string | null} client The IP address of the client.
 * @property {string | null} helo
 * @property {{ version: string, cipher: string } | null} tls
 * @property {string | null} user
 * @property {string} started
 * @property {number} started-millis
 * @property {number | null} ended-millis
 * @property {string | null} ending
 * @property {Transaction[]} transactions The last ones, if there are fewer than `transaction-count`.
 * @property {number | null} transaction-count The number of all transactions. Null in the transcript of a message.
 * @property {number} refused The number of replies that were refusals.
 */

/**
 * One mail transaction of a session.
 * @typedef {object} Transaction
 * @property {string} from
 * @property {string[]} to
 * @property {{ mail: string, rcpt: string[] }} parameters
 * @property {'stored' | 'discarded' | 'refused' | 'aborted'} outcome
 * @property {string | null} reply
 * @property {{ mailbox: string, id: string }[]} messages
 */

/**
 * @typedef {{ 'after-millis': number, from: 'client' | 'server', text: string }} TranscriptLine A line of a session.
 * @typedef {{ session: Session, lines: TranscriptLine[] }} Transcript
 * @typedef {{ sessions: Session[], next: string | null }} SessionPage
 */

/** @typedef {'queued' | 'sending' | 'delivered' | 'failed' | 'cancelled'} EntryState */

/**
 * A target of a queue.
 * @typedef {object} QueueTarget
 * @property {string} name
 * @property {string} state
 * @property {string | null} last-error
 * @property {Record<EntryState, number>} entries The number of queue entries by state.
 */

/**
 * A server that messages can be released to.
 * @typedef {object} RelayTargetDetails
 * @property {string} host
 * @property {number} port
 * @property {string[]} allowed The patterns of recipients that are allowed.
 * @property {string[]} blocked The patterns of recipients that are not, even if they are allowed.
 * @property {'ready' | 'paused'} state Paused if the server cannot be reached.
 * @property {string | null} paused-until
 * @typedef {QueueTarget & RelayTargetDetails} RelayTarget
 */

/**
 * A program that events are sent to.
 * @typedef {object} WebhookTargetDetails
 * @property {string} url The scheme, host and port of its URL.
 * @property {{ events: string[], mailboxes: string[] }[]} filters Events that match any of them are sent.
 * @property {'active' | 'paused' | 'failing'} state Failing if it cannot be reached.
 * @property {string | null} next-attempt
 * @typedef {QueueTarget & WebhookTargetDetails} WebhookTarget
 */

/**
 * An entry of a queue, for one target.
 * @typedef {object} QueueEntry
 * @property {string} id
 * @property {string} message
 * @property {string} mailbox
 * @property {string} target
 * @property {EntryState} state
 * @property {number} attempts
 * @property {string} created
 * @property {string} expires
 * @property {string | null} next-attempt
 * @property {string | null} last-attempt
 * @property {string} last-reply The last reply of the target, or the error that prevented it.
 */

/**
 * A message in the relay queue.
 * @typedef {object} RelayEntryDetails
 * @property {string} sender
 * @property {{ address: string, state: 'waiting' | 'delivered' | 'failed', reply: string }[]} recipients
 * @property {'release' | 'forward'} origin Whether a client or a rule requested it.
 * @property {string | null} by The name of the user or token that released it.
 * @typedef {QueueEntry & RelayEntryDetails} RelayEntry
 */

/** An event in the webhook queue. @typedef {QueueEntry & { event: 'stored' | 'deleted', 'webhook-id': string }} WebhookEntry */

/**
 * @template {QueueEntry} E
 * @typedef {{ entries: E[], next: string | null }} EntryPage
 */

/** @typedef {EntryPage<RelayEntry>} RelayEntryPage */

/**
 * A mailbox that contains messages.
 * @typedef {object} Mailbox
 * @property {string} name
 * @property {number} messages
 * @property {number} unseen
 * @property {number} bytes
 * @property {{ id: string, date: string, 'posix-millis': number }} newest
 */

/** @typedef {{ mailboxes: Mailbox[], next: string | null }} MailboxPage */

/** A tag, and the number of messages that have it. @typedef {{ name: string, count: number }} Tag */

/**
 * @typedef {object} Server
 * @property {string} version
 * @property {string} build-date
 * @property {number} started-millis
 * @property {'local' | 'full' | 'domain'} mailbox-naming
 * @property {boolean} monitor-visible
 * @property {{ port: number | null, domain: string, tls: Tls, 'auth-required': boolean, 'max-message-bytes': number, 'max-recipients': number }} smtp
 * @property {{ port: number | null, tls: Tls }} pop3
 * @property {{ port: number | null, tls: Tls }} imap
 * @property {string | null} script The file name of the script, or null.
 * @property {number} webhooks The number of webhooks.
 * @property {string[]} [relay] The names of the relay targets that the page may send messages to.
 * @property {boolean} [chaos] Whether failures of SMTP can be simulated.
 * @property {string | null} project The project that all mail of this page is in, or null.
 * @property {string | null} user The user name of the login, or null.
 * @property {boolean} locked True if a login is required.
 */

/** @typedef {'off' | 'starttls' | 'implicit'} Tls */

/** A simulated failure: the reply code, and the probability in percent. @typedef {{ code: number, probability: number }} ChaosTrigger */
/** @typedef {{ sender: ChaosTrigger, recipient: ChaosTrigger, authentication: ChaosTrigger }} Chaos */

/** A project, with the counts of the copies in its mailboxes. @typedef {{ name: string, messages: number, unseen: number }} Project */

/**
 * The configuration, as returned by `/serve/status`.
 * @typedef {object} Status
 * @property {string} version
 * @property {string} build-date
 * @property {string} pop3-listener
 * @property {string} imap-listener
 * @property {string} web-listener
 * @property {{ addr: string, 'default-accept': boolean, 'accept-domains': string[], 'reject-domains': string[], 'default-store': boolean, 'store-domains': string[], 'discard-domains': string[], 'reject-origin-domains': string[] }} smtp-config
 * @property {{ 'mailbox-msg-cap': number, 'store-type': string, 'retention-period': string }} storage-config
 */

/**
 * The counters of `/debug/vars`. A `Hist` contains the values of the number next to it in the last hour, one per minute, separated
 * by commas, oldest first: at most 61 values, none in the first minute. Counters start at zero when the server starts.
 * @typedef {object} Vars
 * @property {{ ConnectsTotal: number, ConnectsCurrent: number, ConnectsHist: string, ReceivedTotal: number, ReceivedHist: string, ErrorsTotal: number, ErrorsHist: string, WarnsTotal: number, WarnsHist: string }} smtp
 * @property {{ WebSocketConnectsCurrent: number }} http
 * @property {{ DeletesTotal: number, DeletesHist: string, Period: number, RetainedCurrent: number, RetainedHist: string, RetainedSize: number, SizeHist: string, ScanCompletedMillis: number }} retention
 * @property {{ Sys: number, HeapSys: number, HeapAlloc: number, HeapObjects: number }} memstats The memory of the process, under several names.
 * @property {number} goroutines
 * @property {number} startMillis
 */

/** @import { Scope } from './lib/scope.js' */

/**
 * The page of an address, with its parameters.
 * @typedef {{ page: 'mail', scope: Scope, id: string | null } | { page: 'status' | 'settings' | 'send' | 'docs' } | { page: 'sessions', refused: boolean, id: string | null } | { page: 'relay' | 'webhooks', state: EntryState | null, message: string | null } | { page: 'missing' }} Route
 */

export {};
