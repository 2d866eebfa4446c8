package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/resend/resend-go/v3"
)

type resendSDK struct{ client *resend.Client }

func connectResend(address, key string) SDK {
	client := resend.NewClient(key)
	base, err := url.Parse(address + "/")
	check(err)
	client.BaseURL = base
	return resendSDK{client}
}

func resendRequest(message Message) *resend.SendEmailRequest {
	request := &resend.SendEmailRequest{
		From: message.From.String(), To: formatted(message.To), Cc: formatted(message.CC), Bcc: formatted(message.BCC),
		ReplyTo: strings.Join(formatted(message.ReplyTo), ", "),
		Subject: message.Subject, Text: message.Text, Html: message.HTML,
	}
	for _, attachment := range message.Attachments {
		request.Attachments = append(request.Attachments, &resend.Attachment{
			Content: attachment.bytes(), Filename: attachment.Filename, ContentType: attachment.Type, ContentId: attachment.CID,
		})
	}
	return request
}

func (s resendSDK) Send(message Message) error {
	sent, err := s.client.Emails.Send(resendRequest(message))
	if err != nil {
		return err
	}
	email, err := s.client.Emails.Get(sent.Id)
	if err == nil && (email.Id != sent.Id || email.Subject != message.Subject) {
		err = fmt.Errorf("unexpected message %+v", email)
	}
	return err
}

func (s resendSDK) SendBatch(messages []Message) error {
	var requests []*resend.SendEmailRequest
	for _, message := range messages {
		requests = append(requests, resendRequest(message))
	}
	answer, err := s.client.Batch.Send(requests)
	if err == nil && len(answer.Data) != len(messages) {
		err = fmt.Errorf("unexpected answer %+v", answer)
	}
	return err
}

func (s resendSDK) CheckInvalid(err error) error {
	if !strings.HasPrefix(err.Error(), "[ERROR]: ") || !strings.Contains(err.Error(), "to") {
		return fmt.Errorf("unexpected error: %w", err)
	}
	return nil
}
