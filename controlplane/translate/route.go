// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"cmp"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/policy"
)

// bodyMargin is what Envoy may hold of a body beyond what the filter has it hold. At the limit itself Envoy answers 413, before
// the filter knows that the body goes beyond its cap.
const bodyMargin = 1 << 20

// hiddenDots is a dot segment between slashes of which one is escaped. Envoy leaves it alone, an upstream that unescapes
// first does not.
const hiddenDots = `(?i).*(/|\\|%2f|%5c)(\.|%2e){1,2}(%2f|%5c).*|.*(%2f|%5c)(\.|%2e){1,2}((/|\\|%2f|%5c).*)?`

// ours are headers by which Envoy, or a proxy before it, tells who asks and how. They mean nothing to a provider.
var ours = []string{"x-envoy-external-address", "x-forwarded-for", "x-forwarded-proto"}

func (t *translator) routes() *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{Name: RouteName, VirtualHosts: []*routev3.VirtualHost{t.virtualHost()}}
}

func (t *translator) virtualHost() *routev3.VirtualHost {
	v := &routev3.VirtualHost{
		Name:                   RouteName,
		Domains:                []string{"*"},
		RequestBodyBufferLimit: wrapperspb.UInt64(uint64(t.BodyCap) + bodyMargin),
		RequestHeadersToRemove: slices.Clone(ours),
		Routes: []*routev3.Route{
			answer(&routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_SafeRegex{
				SafeRegex: &matcherv3.RegexMatcher{Regex: hiddenDots},
			}}, 400, "weir: the path has dots between escaped slashes"),
		},
	}
	for _, p := range t.providers {
		v.Routes = append(v.Routes, t.long(p, p.routes())...)
	}
	// The filter has answered such requests, and named the prefixes, before they come here.
	v.Routes = append(v.Routes, answer(prefix("/"), 404, "weir: no provider has this prefix"))
	return v
}

// long puts before each route of a provider that may be asked again one for bodies that are longer than what is read of them. What
// Envoy may hold of a request is also what it keeps of it to send it again. The filter says which are long once it has decided: then
// Envoy chooses the route anew, and holds no more than it did already, but keeps less.
func (t *translator) long(p *provider, routes []*routev3.Route) (all []*routev3.Route) {
	for _, r := range routes {
		if p.counted && t.BodyCap > t.parse {
			l := proto.Clone(r).(*routev3.Route)
			l.Match.FilterState = []*matcherv3.FilterStateMatcher{{Key: "wasm." + policy.LongState, Matcher: &matcherv3.FilterStateMatcher_StringMatch{
				StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "1"}},
			}}}
			l.RequestBodyBufferLimit = wrapperspb.UInt64(uint64(t.parse) + bodyMargin)
			all = append(all, l)
		}
		all = append(all, r)
	}
	return all
}

// routes are those of its requests, after those of its websockets if they go elsewhere.
func (p *provider) routes() []*routev3.Route {
	var all []*routev3.Route
	if p.sockets != "" {
		all = p.pair(p.sockets)
		for _, r := range all {
			r.Match.Headers = []*routev3.HeaderMatcher{websocket()}
		}
	}
	return append(all, p.pair(p.cluster)...)
}

// pair is two routes, so that /openai is not the prefix of /openai2; one if every path is the provider's.
func (p *provider) pair(cluster string) []*routev3.Route {
	base := ""
	if p.upstream != nil {
		base = p.upstream.base
	}
	rest := p.route(prefix(p.prefix+"/"), base+"/", cluster)
	if p.prefix == "" {
		return []*routev3.Route{rest}
	}
	exact := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Path{Path: p.prefix}}
	return []*routev3.Route{p.route(exact, cmp.Or(base, "/"), cluster), rest}
}

func (p *provider) route(match *routev3.RouteMatch, path, cluster string) *routev3.Route {
	a := &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster},
		PrefixRewrite:    path,
		// An answer may take as long as it takes, if only something moves.
		Timeout:     durationpb.New(0),
		IdleTimeout: durationpb.New(streamIdle),
	}
	if p.counted {
		a.RetryPolicy = retries(p.dialect)
	}
	if p.upstream != nil {
		a.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: p.upstream.authority()}
	} else {
		// The name that the Envoy's own cluster has for its endpoints, if it has any.
		a.HostRewriteSpecifier = &routev3.RouteAction_AutoHostRewrite{AutoHostRewrite: wrapperspb.Bool(true)}
	}
	return &routev3.Route{Name: p.name, Match: match, Action: &routev3.Route_Route{Route: a}}
}

func websocket() *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{Name: "upgrade", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
		StringMatch: &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "websocket"}, IgnoreCase: true,
		},
	}}
}

func prefix(path string) *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: path}}
}

func answer(match *routev3.RouteMatch, status uint32, text string) *routev3.Route {
	return &routev3.Route{Match: match, Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{
		Status: status,
		Body:   &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text + "\n"}},
	}}}
}
