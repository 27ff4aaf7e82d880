// SPDX-License-Identifier: Apache-2.0

package policy

// What follows lists the fields of each type of a spec for [Decode]. A test compares it with the types, so that none is forgotten.

func (s *Spec) fields() []field {
	return []field{
		{"apiVersion", &s.APIVersion}, {"mode", &s.Mode}, {"on_error", &s.OnError}, {"secret", &s.Secret},
		{"providers", named(&s.Providers)}, {"trust", list(&s.Trust)}, {"who", &s.Who}, {"limits", &s.Limits},
		{"classes", named(&s.Classes)}, {"routes", list(&s.Routes)}, {"output", &s.Output}, {"families", named(&s.Families)},
		{"prices", named(&s.Prices)}, {"weights", named(&s.Weights)}, {"body", &s.Body}, {"settle", &s.Settle},
		{"queue", &s.Queue}, {"degrade", named(&s.Degrade)}, {"spill", named(&s.Spill)}, {"fanout", &s.Fanout}, {"hints", &s.Hints},
		{"log", &s.Log}, {"explain", &s.Explain}, {"endpoints", maybe(&s.Endpoints)}, {"slots", &s.Slots}, {"fleet", &s.Fleet},
	}
}

func (s *ProviderSpec) fields() []field {
	return []field{
		{"upstream", &s.Upstream}, {"cluster", &s.Cluster}, {"prefix", &s.Prefix}, {"dialect", &s.Dialect},
		{"models", named(&s.Models)}, {"adapt", &s.Adapt}, {"ramp", &s.Ramp}, {"stream", &s.Stream},
		{"unmetered", list((*[]string)(&s.Unmetered))}, {"attempts", &s.Attempts},
	}
}

func (s *LimitSpec) fields() []field {
	return []field{
		{"rps", maybe(&s.RPS)}, {"rpm", maybe(&s.RPM)}, {"rph", maybe(&s.RPH)}, {"rpd", maybe(&s.RPD)}, {"tpm", maybe(&s.TPM)},
		{"tph", maybe(&s.TPH)}, {"tpd", maybe(&s.TPD)}, {"itpm", maybe(&s.ITPM)}, {"otpm", maybe(&s.OTPM)},
		{"in_flight", maybe(&s.InFlight)}, {"usd_per_day", &s.USDPerDay}, {"usd_per_month", &s.USDPerMonth},
		{"window", maybe(&s.Window)}, {"reset", maybe(&s.Reset)}, {"burst", maybe(&s.Burst)}, {"scope", &s.Scope},
		{"mode", &s.Mode}, {"max_output", maybe(&s.MaxOutput)}, {"probe", &s.Probe},
	}
}

func (s *EnvironmentSpec) fields() []field {
	return append(s.LimitSpec.fields(), field{"share", &s.Share})
}

func (s *TreeSpec) fields() []field {
	return []field{
		{"tokens", &s.Tokens}, {"calls", &s.Calls}, {"retries", &s.Retries}, {"in_flight", &s.InFlight}, {"ttl", &s.TTL},
		{"floor", &s.Floor}, {"on_retries_spent", &s.OnRetriesSpent},
	}
}

func (s *DegradeSpec) fields() []field {
	return []field{{"model", &s.Model}, {"max_tokens", &s.MaxTokens}, {"static", maybe(&s.Static)}}
}

func (s *StaticSpec) fields() []field {
	return []field{{"file", &s.File}, {"api", &s.API}, {"reply", &s.Reply}, {"stream", &s.Stream}}
}

func (s *SpillSpec) fields() []field {
	return []field{{"provider", &s.Provider}, {"model", &s.Model}}
}

func (s *LimitsSpec) fields() []field {
	return []field{
		{"environment", named(&s.Environment)}, {"tenant", named(&s.Tenant)}, {"user", named(&s.User)},
		{"tree", named(&s.Tree)}, {"tool", named(&s.Tool)},
	}
}

func (s *WhoSpec) fields() []field {
	return []field{
		{"environment", list(&s.Environment)}, {"tenant", list(&s.Tenant)}, {"user", list(&s.User)}, {"tree", list(&s.Tree)},
		{"tool", list(&s.Tool)}, {"class", list(&s.Class)},
	}
}

func (s *AdaptSpec) fields() []field {
	return []field{
		{"off", &s.Off}, {"decrease", &s.Decrease}, {"increase", &s.Increase}, {"cooldown", &s.Cooldown}, {"floor", &s.Floor},
		{"ceiling", &s.Ceiling}, {"climb", &s.Climb},
	}
}

func (s *RampSpec) fields() []field {
	return []field{{"above", &s.Above}, {"growth", &s.Growth}}
}

func (s *StreamSpec) fields() []field {
	return []field{{"include_usage", &s.IncludeUsage}}
}

func (s *ClassSpec) fields() []field {
	return []field{
		{"share", &s.Share}, {"priority", &s.Priority}, {"weight", &s.Weight}, {"on_limit", &s.OnLimit}, {"wait", &s.Wait}, {"aging", &s.Aging},
		{"borrow", maybe(&s.Borrow)},
	}
}

func (s *RouteSpec) fields() []field {
	return []field{{"match", group{{"path", &s.Match.Path}}}, {"class", &s.Class}, {"on_limit", &s.OnLimit}}
}

func (s *OutputSpec) fields() []field {
	return []field{{"default", maybe(&s.Default)}, {"reserve", &s.Reserve}, {"cap", &s.Cap}}
}

func (s *PriceSpec) fields() []field {
	return []field{
		{"input", &s.Input}, {"cached", maybe(&s.Cached)}, {"image", maybe(&s.Image)}, {"output", &s.Output},
		{"reasoning", maybe(&s.Reasoning)},
	}
}

func (s *WeightSpec) fields() []field {
	return []field{{"cached", maybe(&s.Cached)}, {"image", maybe(&s.Image)}, {"reasoning", maybe(&s.Reasoning)}}
}

func (s *BodySpec) fields() []field {
	return []field{{"parse", maybe(&s.Parse)}, {"hold", maybe(&s.Hold)}}
}

func (s *SettleSpec) fields() []field {
	return []field{{"uncertain", &s.Uncertain}}
}

func (s *QueueSpec) fields() []field {
	return []field{{"entries", &s.Entries}, {"bytes", &s.Bytes}, {"order", &s.Order}}
}

func (s *LogSpec) fields() []field {
	return []field{{"admit", &s.Admit}, {"deny", &s.Deny}, {"access", &s.Access}, {"caller", &s.Caller}}
}

func (s *FanoutSpec) fields() []field {
	return []field{{"max", &s.Max}, {"ttl", &s.TTL}, {"per_tree", &s.PerTree}}
}

func (s *HintsSpec) fields() []field {
	return []field{{"header", &s.Header}, {"inject", &s.Inject}}
}

func (s *ExplainSpec) fields() []field {
	return []field{{"header", &s.Header}}
}

func (s *SlotsSpec) fields() []field {
	return []field{{"tenant", &s.Tenant}, {"user", &s.User}, {"tree", &s.Tree}, {"tool", &s.Tool}}
}

func (s *FleetSpec) fields() []field {
	return []field{
		{"scope", &s.Scope}, {"lease", &s.Lease}, {"floor", &s.Floor}, {"max_envoys", &s.MaxEnvoys}, {"forget", &s.Forget},
		{"jitter", maybe(&s.Jitter)}, {"shares", &s.Shares}, {"reports", &s.Reports},
	}
}
