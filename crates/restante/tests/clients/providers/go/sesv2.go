package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sesv2/types"
)

type sesSDK struct{ client *sesv2.Client }

func connectSES(url, key string) SDK {
	return sesSDK{sesv2.New(sesv2.Options{
		BaseEndpoint: aws.String(url),
		Region:       "eu-central-1",
		Credentials:  credentials.NewStaticCredentialsProvider(key, "secret", ""),
	})}
}

func destination(message Message) *types.Destination {
	return &types.Destination{
		ToAddresses: formatted(message.To), CcAddresses: formatted(message.CC), BccAddresses: formatted(message.BCC),
	}
}

func content(text string) *types.Content {
	return &types.Content{Data: aws.String(text), Charset: aws.String("UTF-8")}
}

func (s sesSDK) Send(message Message) error {
	simple := &types.Message{
		Subject: content(message.Subject),
		Body:    &types.Body{Text: content(message.Text), Html: content(message.HTML)},
	}
	for _, attachment := range message.Attachments {
		file := types.Attachment{
			RawContent: attachment.bytes(), FileName: aws.String(attachment.Filename), ContentType: aws.String(attachment.Type),
		}
		if attachment.CID != "" {
			file.ContentId, file.ContentDisposition = aws.String(attachment.CID), types.AttachmentContentDispositionInline
		}
		simple.Attachments = append(simple.Attachments, file)
	}
	answer, err := s.client.SendEmail(context.Background(), &sesv2.SendEmailInput{
		FromEmailAddress: aws.String(message.From.String()),
		ReplyToAddresses: formatted(message.ReplyTo),
		Destination:      destination(message),
		Content:          &types.EmailContent{Simple: simple},
	})
	if err == nil && aws.ToString(answer.MessageId) == "" {
		err = errors.New("the answer has no MessageId")
	}
	return err
}

func (s sesSDK) SendBatch(messages []Message) error {
	first := messages[0]
	var entries []types.BulkEmailEntry
	for _, message := range messages {
		entries = append(entries, types.BulkEmailEntry{Destination: destination(message)})
	}
	template := &types.Template{
		TemplateContent: &types.EmailTemplateContent{
			Subject: aws.String(first.Subject), Text: aws.String(first.Text), Html: aws.String(first.HTML),
		},
		TemplateData: aws.String("{}"),
	}
	answer, err := s.client.SendBulkEmail(context.Background(), &sesv2.SendBulkEmailInput{
		FromEmailAddress: aws.String(first.From.String()),
		DefaultContent:   &types.BulkEmailContent{Template: template},
		BulkEmailEntries: entries,
	})
	if err != nil {
		return err
	}
	for _, result := range answer.BulkEmailEntryResults {
		if result.Status != types.BulkEmailStatusSuccess || aws.ToString(result.MessageId) == "" {
			return fmt.Errorf("unexpected result %+v", result)
		}
	}
	if len(answer.BulkEmailEntryResults) != len(messages) {
		return fmt.Errorf("%d results", len(answer.BulkEmailEntryResults))
	}
	return nil
}

func (s sesSDK) CheckInvalid(err error) error {
	var refused *types.BadRequestException
	if !errors.As(err, &refused) {
		return fmt.Errorf("not a BadRequestException: %w", err)
	}
	if refused.ErrorMessage() == "" {
		return errors.New("the error has no message")
	}
	return nil
}
