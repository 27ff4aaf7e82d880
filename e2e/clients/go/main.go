// SPDX-License-Identifier: Apache-2.0

// Command go makes calls with openai-go as its documentation shows it: go URL. What goes in and out is the same as of driver.py.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

type call struct {
	Model     string            `json:"model"`
	Stream    bool              `json:"stream"`
	Usage     bool              `json:"usage"`
	Responses bool              `json:"responses"`
	MaxTokens int64             `json:"max_tokens"`
	Timeout   float64           `json:"timeout"`
	Headers   map[string]string `json:"headers"`
}

type said struct {
	OK      bool    `json:"ok"`
	Error   string  `json:"error,omitempty"`
	Status  int     `json:"status,omitempty"`
	Message string  `json:"message,omitempty"`
	Text    string  `json:"text,omitempty"`
	Deltas  int     `json:"deltas,omitempty"`
	Usage   bool    `json:"usage,omitempty"`
	Seconds float64 `json:"seconds"`
}

func main() {
	client := openai.NewClient(option.WithBaseURL(os.Args[1]+"/openai/v1/"), option.WithAPIKey("key"))
	out := json.NewEncoder(os.Stdout)
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		began := time.Now()
		s := try(client, in.Bytes())
		s.Seconds = time.Since(began).Seconds()
		if err := out.Encode(s); err != nil {
			panic(err)
		}
	}
}

func try(client openai.Client, line []byte) (s said) {
	var c call
	err := json.Unmarshal(line, &c)
	if err == nil {
		err = c.ask(client, &s)
	}
	s.OK = err == nil
	if err != nil {
		s.Error, s.Message = fmt.Sprintf("%T", err), err.Error()
	}
	var e *openai.Error
	if errors.As(err, &e) {
		// What Error() says is without the provider's words.
		s.Error, s.Status, s.Message = "openai.Error", e.StatusCode, e.Message
	}
	return s
}

func (c *call) ask(client openai.Client, s *said) error {
	var options []option.RequestOption
	for k, v := range c.Headers {
		options = append(options, option.WithHeader(k, v))
	}
	if c.Timeout > 0 {
		options = append(options, option.WithRequestTimeout(time.Duration(c.Timeout*float64(time.Second))))
	}
	if c.Responses {
		return c.events(client, options, s)
	}
	params := openai.ChatCompletionNewParams{
		Model: cmp.Or(c.Model, "gpt-4o"), MaxTokens: openai.Int(c.MaxTokens),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
	}
	if c.Usage {
		params.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	if c.Stream {
		return c.stream(client, params, options, s)
	}
	answer, err := client.Chat.Completions.New(context.Background(), params, options...)
	if err != nil {
		return err
	}
	s.Text, s.Usage = answer.Choices[0].Message.Content, answer.Usage.TotalTokens > 0
	return nil
}

func (c *call) stream(client openai.Client, params openai.ChatCompletionNewParams, options []option.RequestOption, s *said) error {
	stream := client.Chat.Completions.NewStreaming(context.Background(), params, options...)
	for stream.Next() {
		chunk := stream.Current()
		s.Usage = s.Usage || chunk.Usage.TotalTokens > 0
		for _, choice := range chunk.Choices {
			if choice.Delta.Content != "" {
				s.Text += choice.Delta.Content
				s.Deltas++
			}
		}
	}
	return stream.Err()
}

// events reads a stream of the Responses API.
func (c *call) events(client openai.Client, options []option.RequestOption, s *said) error {
	stream := client.Responses.NewStreaming(context.Background(), responses.ResponseNewParams{
		Model: "gpt-4o", MaxOutputTokens: openai.Int(c.MaxTokens),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")},
	}, options...)
	for stream.Next() {
		switch event := stream.Current(); event.Type {
		case "response.output_text.delta":
			s.Text += event.Delta
			s.Deltas++
		case "response.completed":
			s.Usage = event.Response.Usage.TotalTokens > 0
		}
	}
	return stream.Err()
}
