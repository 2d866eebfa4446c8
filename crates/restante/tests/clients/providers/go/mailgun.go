package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mailgun/mailgun-go/v5"
)

const domain = "example.test"

type mailgunSDK struct{ client *mailgun.Client }

func connectMailgun(url, key string) SDK {
	client := mailgun.NewMailgun(key)
	check(client.SetAPIBase(url))
	return mailgunSDK{client}
}

func (s mailgunSDK) send(message mailgun.Message) error {
	answer, err := s.client.Send(context.Background(), message)
	if err != nil {
		return err
	}
	if answer.Message != "Queued. Thank you." || !strings.HasPrefix(answer.ID, "<") {
		return fmt.Errorf("unexpected answer %+v", answer)
	}
	return nil
}

func mailgunMessage(message Message) *mailgun.PlainMessage {
	form := mailgun.NewMessage(domain, message.From.String(), message.Subject, message.Text, formatted(message.To)...)
	form.SetHTML(message.HTML)
	for _, person := range message.CC {
		form.AddCC(person.String())
	}
	for _, person := range message.BCC {
		form.AddBCC(person.String())
	}
	for _, person := range message.ReplyTo {
		form.SetReplyTo(person.String())
	}
	for _, attachment := range message.Attachments {
		if attachment.CID == "" {
			form.AddBufferAttachment(attachment.Filename, attachment.bytes())
		} else {
			form.AddReaderInline(attachment.CID, io.NopCloser(bytes.NewReader(attachment.bytes())))
		}
	}
	return form
}

func (s mailgunSDK) Send(message Message) error {
	return s.send(mailgunMessage(message))
}

// SendBatch sends one message with variables of the recipients.
func (s mailgunSDK) SendBatch(messages []Message) error {
	first := messages[0]
	first.To, first.Text = nil, strings.ReplaceAll(first.Text, "Bob", "%recipient.name%")
	form := mailgunMessage(first)
	for _, message := range messages {
		for _, person := range message.To {
			check(form.AddRecipientAndVariables(person.String(), map[string]any{"name": "Bob"}))
		}
	}
	return s.send(form)
}

func (s mailgunSDK) CheckInvalid(err error) error {
	var refused *mailgun.UnexpectedResponseError
	if !errors.As(err, &refused) || refused.Actual != 400 || !strings.Contains(string(refused.Data), "to") {
		return fmt.Errorf("unexpected error: %w", err)
	}
	return nil
}
