// SPDX-License-Identifier: Apache-2.0

package policy

// A Spec is a policy as it is written, decoded but neither checked nor completed; [Compile] does both. As JSON it is what
// the control plane sends to the filter, which reads the fields that specfields.go lists.
type Spec struct {
	APIVersion string                  `json:"apiVersion"`
	Mode       Mode                    `json:"mode,omitzero"`
	OnError    string                  `json:"on_error,omitempty"`
	Secret     string                  `json:"secret,omitempty"`
	Providers  map[string]ProviderSpec `json:"providers"`
	Trust      []string                `json:"trust,omitempty"`
	Who        WhoSpec                 `json:"who,omitzero"`
	Limits     LimitsSpec              `json:"limits,omitzero"`
	Classes    map[string]ClassSpec    `json:"classes,omitempty"`
	Routes     []RouteSpec             `json:"routes,omitempty"`
	Output     OutputSpec              `json:"output,omitzero"`
	Families   map[string]string       `json:"families,omitempty"`
	Prices     map[string]PriceSpec    `json:"prices,omitempty"`
	Weights    map[string]WeightSpec   `json:"weights,omitempty"`
	Body       BodySpec                `json:"body,omitzero"`
	Settle     SettleSpec              `json:"settle,omitzero"`
	Queue      QueueSpec               `json:"queue,omitzero"`
	Log        LogSpec                 `json:"log,omitzero"`
	Degrade    map[string]*DegradeSpec `json:"degrade,omitempty"`
	Spill      map[string]*SpillSpec   `json:"spill,omitempty"`
	Fanout     FanoutSpec              `json:"fanout,omitzero"`
	Hints      HintsSpec               `json:"hints,omitzero"`
	Explain    ExplainSpec             `json:"explain,omitzero"`
	Endpoints  *bool                   `json:"endpoints,omitempty"`
	Slots      SlotsSpec               `json:"slots,omitzero"`
	Fleet      FleetSpec               `json:"fleet,omitzero"`
}

// ProviderSpec is an account at an upstream API.
type ProviderSpec struct {
	Upstream  string                `json:"upstream,omitempty"`
	Cluster   string                `json:"cluster,omitempty"`
	Prefix    string                `json:"prefix,omitempty"`
	Dialect   string                `json:"dialect,omitempty"`
	Models    map[string]*LimitSpec `json:"models,omitempty"`
	Adapt     AdaptSpec             `json:"adapt,omitzero"`
	Ramp      RampSpec              `json:"ramp,omitzero"`
	Stream    StreamSpec            `json:"stream,omitzero"`
	Unmetered Unmetered             `json:"unmetered,omitempty"`
	Attempts  bool                  `json:"attempts,omitempty"`
}

// LimitSpec is what one key of a tier is held to.
type LimitSpec struct {
	RPS         *Count  `json:"rps,omitempty"`
	RPM         *Count  `json:"rpm,omitempty"`
	RPH         *Count  `json:"rph,omitempty"`
	RPD         *Count  `json:"rpd,omitempty"`
	TPM         *Count  `json:"tpm,omitempty"`
	TPH         *Count  `json:"tph,omitempty"`
	TPD         *Count  `json:"tpd,omitempty"`
	ITPM        *Count  `json:"itpm,omitempty"`
	OTPM        *Count  `json:"otpm,omitempty"`
	InFlight    *Count  `json:"in_flight,omitempty"`
	USDPerDay   float64 `json:"usd_per_day,omitempty"`
	USDPerMonth float64 `json:"usd_per_month,omitempty"`
	Window      *Window `json:"window,omitempty"`
	Reset       *Reset  `json:"reset,omitempty"`
	Burst       *Burst  `json:"burst,omitempty"`
	Scope       string  `json:"scope,omitempty"`
	Mode        Mode    `json:"mode,omitzero"`
	MaxOutput   *Count  `json:"max_output,omitempty"`
	Probe       bool    `json:"probe,omitempty"`
}

// EnvironmentSpec is what an environment is held to: a share of each provider's limits, or limits of its own, or both.
type EnvironmentSpec struct {
	Share Share `json:"share,omitempty"`
	LimitSpec
}

// TreeSpec is what a request tree may use in all.
type TreeSpec struct {
	Tokens   Count    `json:"tokens,omitempty"`
	Calls    Count    `json:"calls,omitempty"`
	Retries  Count    `json:"retries,omitempty"`
	InFlight Count    `json:"in_flight,omitempty"`
	TTL      Duration `json:"ttl,omitempty"`
	Floor    Share    `json:"floor,omitempty"`

	OnRetriesSpent string `json:"on_retries_spent,omitempty"` // deny | degrade
}

// LimitsSpec is the limits by tier.
type LimitsSpec struct {
	Environment map[string]*EnvironmentSpec `json:"environment,omitempty"`
	Tenant      map[string]*LimitSpec       `json:"tenant,omitempty"`
	User        map[string]*LimitSpec       `json:"user,omitempty"`
	Tree        map[string]*TreeSpec        `json:"tree,omitempty"`
	Tool        map[string]*LimitSpec       `json:"tool,omitempty"`
}

// WhoSpec says where a tier's key comes from; the first source that is there wins.
type WhoSpec struct {
	Environment []Source `json:"environment,omitempty"`
	Tenant      []Source `json:"tenant,omitempty"`
	User        []Source `json:"user,omitempty"`
	Tree        []Source `json:"tree,omitempty"`
	Tool        []Source `json:"tool,omitempty"`
	Class       []Source `json:"class,omitempty"`
}

// AdaptSpec says how a provider's rate follows what it answers.
type AdaptSpec struct {
	Off      bool     `json:"off,omitempty"`
	Decrease float64  `json:"decrease,omitempty"`
	Increase Growth   `json:"increase,omitzero"`
	Cooldown Duration `json:"cooldown,omitempty"`
	Floor    Share    `json:"floor,omitempty"`
	Ceiling  Share    `json:"ceiling,omitempty"`
	Climb    string   `json:"climb,omitempty"`
}

// RampSpec bounds how fast the rate to a provider may climb.
type RampSpec struct {
	Above  Count  `json:"above,omitempty"`
	Growth Growth `json:"growth,omitzero"`
}

// StreamSpec says what weir does to streams.
type StreamSpec struct {
	IncludeUsage string `json:"include_usage,omitempty"` // keep | add
}

// ClassSpec is a priority class.
type ClassSpec struct {
	Share    Share    `json:"share,omitempty"`    // of the models' limits
	Priority float64  `json:"priority,omitempty"` // higher ones first; without, the share in percent
	Weight   Count    `json:"weight,omitempty"`   // with queue: {order: weighted}
	OnLimit  string   `json:"on_limit,omitempty"`
	Wait     Duration `json:"wait,omitempty"`
	Aging    Duration `json:"aging,omitempty"`
	Borrow   *bool    `json:"borrow,omitempty"` // false: the share is not lent
}

// RouteSpec gives requests of a path a class.
type RouteSpec struct {
	Match struct {
		Path string `json:"path"`
	} `json:"match"`
	Class   string `json:"class,omitempty"`
	OnLimit string `json:"on_limit,omitempty"`
}

// OutputSpec says what is reserved for output.
type OutputSpec struct {
	Default *Count `json:"default,omitempty"`
	Reserve string `json:"reserve,omitempty"` // declared or learned
	Cap     string `json:"cap,omitempty"`     // none, or default: written into requests that declare none
}

// PriceSpec is US dollars per million tokens. Without prices of their own (0 is one), cached and image tokens cost what input does,
// and reasoning what output does.
type PriceSpec struct {
	Input     float64  `json:"input,omitempty"`
	Cached    *float64 `json:"cached,omitempty"` // 0 is a price, too
	Image     *float64 `json:"image,omitempty"`
	Output    float64  `json:"output,omitempty"`
	Reasoning *float64 `json:"reasoning,omitempty"`
}

// WeightSpec is what share of tokens of a kind counts toward limits; all of them without.
type WeightSpec struct {
	Cached    *Share `json:"cached,omitempty"`
	Image     *Share `json:"image,omitempty"`
	Reasoning *Share `json:"reasoning,omitempty"`
}

// BodySpec bounds what of a body is read.
type BodySpec struct {
	Parse *Size `json:"parse,omitempty"`
	Hold  *Size `json:"hold,omitempty"`
}

// SettleSpec says what happens to a reservation when nobody knows what the call has used.
type SettleSpec struct {
	Uncertain string `json:"uncertain,omitempty"` // refund | keep
}

// QueueSpec bounds what waits, and says who goes first.
type QueueSpec struct {
	Entries Count  `json:"entries,omitempty"`
	Bytes   Size   `json:"bytes,omitempty"`
	Order   string `json:"order,omitempty"` // priority or weighted
}

// LogSpec says what is written of each decision, and how loud: off, debug, info or warn.
type LogSpec struct {
	Admit  string `json:"admit,omitempty"`
	Deny   string `json:"deny,omitempty"`
	Access bool   `json:"access,omitempty"` // as filter state, for Envoy's access log
	Caller bool   `json:"caller,omitempty"` // who asks, too
}

// FanoutSpec bounds reservations for parallel branches.
type FanoutSpec struct {
	Max     Count    `json:"max,omitempty"`      // calls of one kind
	TTL     Duration `json:"ttl,omitempty"`      // then what no branch has taken comes back
	PerTree Count    `json:"per_tree,omitempty"` // open ones
}

// HintsSpec says how planners are told what is left.
type HintsSpec struct {
	Header bool `json:"header,omitempty"` // in x-weir-hint of answers
	Inject bool `json:"inject,omitempty"` // into requests
}

// ExplainSpec says whether callers may ask for the buckets they met.
type ExplainSpec struct {
	Header bool `json:"header,omitempty"`
}

// SlotsSpec is how many keys of a tier are held in memory at once.
type SlotsSpec struct {
	Tenant Count `json:"tenant,omitempty"`
	User   Count `json:"user,omitempty"`
	Tree   Count `json:"tree,omitempty"`
	Tool   Count `json:"tool,omitempty"`
}

// FleetSpec says how limits are shared over many Envoys.
type FleetSpec struct {
	Scope     string    `json:"scope,omitempty"`
	Lease     Duration  `json:"lease,omitempty"`
	Floor     Share     `json:"floor,omitempty"`
	MaxEnvoys Count     `json:"max_envoys,omitempty"`
	Forget    Duration  `json:"forget,omitempty"`
	Jitter    *Duration `json:"jitter,omitempty"`

	// Shares says that limits of the fleet's scope are held by shares that a control plane grants. `weir serve` and `weir bootstrap`
	// say it; without it each Envoy has each limit for itself.
	Shares bool `json:"shares,omitempty"`

	// Reports says that a control plane is told what becomes of calls, also where it grants nothing. `weir up` says it.
	Reports bool `json:"reports,omitempty"`
}
