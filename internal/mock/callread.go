// SPDX-License-Identifier: Apache-2.0

package mock

import "net/http"

// Names of models where a request gives none.
const (
	unknownModel = "mock"
	toolModel    = "tool"
)

// read takes in the headers and the body, and works out what the call costs. A
// failure without a status is none.
func (c *call) read() failure {
	err := c.over.parse(c.r.Header)
	c.event.Tag = c.over.tag
	if err != nil {
		return badRequest(err)
	}
	if c.r.Body == nil { // only without a server around
		c.r.Body = http.NoBody
	}
	b, err := readBody(c.r.Body, c.in, c.server.ledger.keep > 0)
	c.in = b.head
	c.event.BodyBytes, c.event.BodySHA256 = b.size, b.sum
	c.noteTrailers()
	if err != nil {
		c.cutShort = true
		return badRequest(err)
	}
	if c.ep.parsed {
		if err := c.parse(b); err != nil {
			return badRequest(err)
		}
	}
	c.cost()
	return failure{}
}

func badRequest(err error) failure {
	return failure{status: http.StatusBadRequest, message: err.Error()}
}

// noteTrailers lists trailers with the headers; they are known after the body.
func (c *call) noteTrailers() {
	for name := range c.r.Trailer {
		if len(c.event.Headers) < maxHeaderNames && c.server.ledger.keep > 0 {
			c.event.Headers = append(c.event.Headers, "trailer:"+c.server.lower.get(name))
		}
	}
}

// parse reads the request's members. A body that is compressed is not looked
// into: it counts by its length.
func (c *call) parse(b body) error {
	packed := c.r.Header.Get("Content-Encoding")
	if packed != "" && packed != "identity" {
		c.req.textBytes = b.size
	} else {
		q, err := parseRequest(b.head, !b.whole())
		if err != nil {
			return err
		}
		c.req = q
		if !b.whole() {
			c.req.textBytes = b.size
		}
	}
	if !c.ep.many {
		c.req.n, c.req.bestOf, c.req.inputs = 0, 0, 0
	}
	return nil
}

// cost works out input, output and reservation.
func (c *call) cost() {
	c.model = c.modelName()
	c.usage = c.over.usageOr(c.settings.usage)
	c.input = c.req.inputTokens()
	if c.over.input >= 0 {
		c.input = c.over.input
	}
	reserved := int64(0)
	if c.ep.output {
		reserved = c.req.reserve()
		c.output = c.usage.output(reserved)
		if c.over.output >= 0 {
			c.output = c.over.output
		}
	}
	c.event.Model, c.event.Stream = c.model, c.req.stream && c.ep.stream != nil
	c.event.Reserved = c.input + reserved
}

func (c *call) modelName() string {
	switch {
	case !c.ep.parsed && c.ep.metered:
		return toolModel
	case !c.ep.parsed || c.req.model != "":
		return c.req.model
	}
	if name := modelInPath(c.event.Path); name != "" {
		return name
	}
	return unknownModel
}
