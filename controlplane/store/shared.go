// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// A Shared store is one that several control planes use at once. It carries messages between them: each comes once or not at all,
// those of one sender in order.
type Shared interface {
	Store
	// Publish sends a message to all who listen to a channel.
	Publish(ctx context.Context, channel string, message []byte) error
	// Listen gives the messages of channels to heard, one after another, until ctx ends. While the store is away there are none.
	Listen(ctx context.Context, heard func(channel string, message []byte), channels ...string)
}

var _ Shared = (*Redis)(nil)

// Publish sends a message.
func (s *Redis) Publish(ctx context.Context, channel string, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := s.client.Publish(ctx, s.key("channel", channel), message).Err(); err != nil {
		return unavailable("publish", hide(err))
	}
	return nil
}

// channelSize is how many messages wait for one that is being heard; more are lost.
const channelSize = 4096

// Listen gives messages.
func (s *Redis) Listen(ctx context.Context, heard func(string, []byte), channels ...string) {
	names := make(map[string]string, len(channels))
	var keys []string
	for _, c := range channels {
		keys = append(keys, s.key("channel", c))
		names[s.key("channel", c)] = c
	}
	p := s.client.Subscribe(ctx, keys...)
	defer p.Close()
	messages := p.Channel(redis.WithChannelSize(channelSize))
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-messages:
			if !ok {
				return
			}
			heard(names[m.Channel], []byte(m.Payload))
		}
	}
}
