// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// What Envoy sends again is counted by the filter in the cluster, which may refuse it, so that a route to a cluster without that
// filter has no retry policy. weir itself never sends anything again.
const (
	maxRetries = 2

	// retryBase and retryMost are between which Envoy chooses at random how long it waits, each time twice as long: as the
	// libraries of OpenAI and Anthropic do.
	retryBase = 500 * time.Millisecond
	retryMost = 8 * time.Second

	// retryAfterMost is the longest Retry-After that Envoy waits for. What asks for more it is kept from sending again, and the
	// caller decides. The filter knows the same number.
	retryAfterMost = 10 * time.Second

	// retryShare is how many retries there may be to one provider, in percent of the requests in flight: when it fails for all,
	// retries are the last thing that it needs. A few are always allowed.
	retryShare = 20
	retryFew   = 3
)

// retryStatuses are those that say that the same request may go well a moment later; 529 is Anthropic's word for 503.
var retryStatuses = []uint32{408, 429, 502, 503, 504, 529}

// retries are Envoy's. What was sent and came to nothing is not sent again unless the provider says so by a status: it may have
// done its work.
func retries(dialect string) *routev3.RetryPolicy {
	r := &routev3.RetryPolicy{
		RetryOn:              "connect-failure,refused-stream,retriable-status-codes",
		RetriableStatusCodes: retryStatuses,
		NumRetries:           wrapperspb.UInt32(maxRetries),
		RetryBackOff: &routev3.RetryPolicy_RetryBackOff{
			BaseInterval: durationpb.New(retryBase), MaxInterval: durationpb.New(retryMost),
		},
		RateLimitedRetryBackOff: &routev3.RetryPolicy_RateLimitedRetryBackOff{
			ResetHeaders: []*routev3.RetryPolicy_ResetHeader{{Name: "retry-after", Format: routev3.RetryPolicy_SECONDS}},
			MaxInterval:  durationpb.New(retryAfterMost),
		},
	}
	r.RetriableRequestHeaders = harmless()
	if dialect != "generic" {
		for _, end := range generation {
			r.RetriableRequestHeaders = append(r.RetriableRequestHeaders, matches(":path", ".*"+end+`(\?.*)?`))
		}
	}
	return r
}

// generation is the ends of paths by which a model is asked, whatever the dialect: to ask twice costs tokens, and changes nothing.
// There are several, for Envoy takes no long patterns.
var generation = []string{
	"/(chat|completions|responses|embeddings)", "/(messages|embed|rerank|generate)", "/(converse|converse-stream)",
	"/(invoke|invoke-with-response-stream)", ":(generateContent|streamGenerateContent)", ":(embedContent|batchEmbedContents)",
	":(rawPredict|streamRawPredict)",
}

// harmless are other requests that may be sent twice: those that only read, and those that the API knows by a key.
func harmless() []*routev3.HeaderMatcher {
	all := []*routev3.HeaderMatcher{matches(":method", "GET|HEAD|OPTIONS")}
	for _, name := range []string{"idempotency-key", "x-idempotency-key"} {
		all = append(all, &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}})
	}
	return all
}

func matches(header, regex string) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{Name: header, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{
		MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: regex}},
	}}}
}

func retryBudget() *clusterv3.CircuitBreakers_Thresholds_RetryBudget {
	return &clusterv3.CircuitBreakers_Thresholds_RetryBudget{
		BudgetPercent: &typev3.Percent{Value: retryShare}, MinRetryConcurrency: wrapperspb.UInt32(retryFew),
	}
}
