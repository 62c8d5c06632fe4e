//! A language model (a decoder of transformer layers) and how its training is divided: sizes of messages and times of computing by
//! formulas. `docs/interchange.md` has them all.

use crate::error::WorkloadError;
use vef_format::units::Bytes;

/// A language model, and how a step of its training is divided.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Transformer layers, L.
    pub layers: u32,
    /// Size of a token's vector, h.
    pub hidden: u64,
    /// Size of the inner vector of the feed-forward part, f.
    pub inner: u64,
    /// Matrices of the feed-forward part, m: 2, or 3 if it is gated.
    pub matrices: u64,
    /// Size of the vocabulary, V.
    pub vocabulary: u64,
    /// Tokens of a sequence, s.
    pub sequence: u64,
    /// Sequences of a micro-batch, b.
    pub micro_batch: u64,
    /// Bytes of an element, e.
    pub element: u64,
    /// Experts of a layer, E; 1: the model is dense.
    pub experts: u64,
    /// Experts that each token uses, k.
    pub used_experts: u64,
    /// Ranks that share the experts of a layer: a divisor of the replicas.
    pub expert_ranks: u32,
    /// Stage of ZeRO, 0 to 3.
    pub zero: u32,
    /// What a rank computes in a second, flop.
    pub flops: f64,
    /// Whether gradients are exchanged while the ranks compute.
    pub overlap: bool,
}

impl Default for Model {
    /// A model of 7 billion parameters (32 layers of 4096, gated), on accelerators of 200 Tflop/s.
    fn default() -> Self {
        Self {
            layers: 32,
            hidden: 4096,
            inner: 11008,
            matrices: 3,
            vocabulary: 32000,
            sequence: 4096,
            micro_batch: 1,
            element: 2,
            experts: 1,
            used_experts: 1,
            expert_ranks: 1,
            zero: 0,
            flops: 200e12,
            overlap: true,
        }
    }
}

impl Model {
    /// One of 260 thousand parameters, for tests.
    pub fn tiny() -> Self {
        Self {
            layers: 4,
            hidden: 64,
            inner: 256,
            matrices: 2,
            vocabulary: 1000,
            sequence: 32,
            ..Self::default()
        }
    }

    /// Tokens of a micro-batch.
    fn tokens(&self) -> u64 {
        self.sequence * self.micro_batch
    }

    /// Parameters of a layer that all replicas have: attention, and of a dense model the feed-forward part.
    pub fn shared_parameters(&self) -> u64 {
        4 * self.hidden * self.hidden
            + if self.experts > 1 { 0 } else { self.matrices * self.hidden * self.inner }
    }

    /// Parameters of a layer's experts.
    pub fn expert_parameters(&self) -> u64 {
        if self.experts > 1 { self.experts * self.matrices * self.hidden * self.inner } else { 0 }
    }

    /// Parameters of the table of tokens, which is at the first stage and at the last.
    pub fn embedding(&self) -> u64 {
        self.vocabulary * self.hidden
    }

    /// Parameters of the whole model.
    pub fn parameters(&self) -> u64 {
        let layers = u64::from(self.layers);
        layers * (self.shared_parameters() + self.expert_parameters()) + 2 * self.embedding()
    }

    /// The vectors of a micro-batch: what passes between stages, and what a tensor group reduces.
    pub fn activations(&self) -> Bytes {
        Bytes(self.tokens() * self.hidden * self.element)
    }

    /// What a rank sends to the experts of a layer, and gets back.
    pub fn dispatched(&self) -> Bytes {
        Bytes(self.used_experts * self.activations().0)
    }

    /// Operations of a layer for a micro-batch, forward, flop.
    pub fn layer_flops(&self) -> f64 {
        let [tokens, h, f] = [self.tokens(), self.hidden, self.inner].map(|number| number as f64);
        let feed_forward = (self.matrices * self.used_experts) as f64 * h * f;
        2.0 * tokens * (4.0 * h * h + feed_forward) + 4.0 * tokens * self.sequence as f64 * h
    }

    /// Operations of the last stage for the tokens that it predicts, forward, flop.
    pub fn head_flops(&self) -> f64 {
        2.0 * self.tokens() as f64 * self.embedding() as f64
    }

    /// Checks the numbers for these replicas, tensor groups and stages.
    pub(crate) fn check(&self, data: u32, pipeline: u32) -> Result<(), WorkloadError> {
        let wrong = |what, problem: String| Err(WorkloadError::Setting { what, problem });
        let numbers = [
            self.hidden,
            self.inner,
            self.matrices,
            self.vocabulary,
            self.sequence,
            self.micro_batch,
            self.element,
            self.experts,
            self.used_experts,
            u64::from(self.layers),
            u64::from(self.expert_ranks),
        ];
        if numbers.contains(&0) {
            return wrong("model", "every number must be at least 1".to_owned());
        }
        // So that no size of a message overflows.
        if numbers.iter().any(|&number| number > 1 << 24) || self.tokens() > 1 << 32 {
            return wrong(
                "model",
                "numbers up to 16777216 are possible, and 4294967296 tokens of a micro-batch".to_owned(),
            );
        }
        if !self.layers.is_multiple_of(pipeline) {
            return wrong("layers", format!("{pipeline} stages do not divide {}", self.layers));
        }
        let (experts, ranks) = (self.experts, self.expert_ranks);
        if self.used_experts > experts {
            let used = self.used_experts;
            return wrong(
                "used-experts",
                format!("a token uses {used}, and a layer has {experts} (--experts)"),
            );
        }
        if !experts.is_multiple_of(u64::from(ranks)) {
            return wrong(
                "expert-ranks",
                format!("{ranks} ranks do not divide {experts} experts (--experts)"),
            );
        }
        if !data.is_multiple_of(ranks) {
            return wrong(
                "expert-ranks",
                format!("{ranks} ranks do not divide {data} replicas (--parallel)"),
            );
        }
        if self.zero > 3 {
            return wrong("zero", "stages 0 to 3".to_owned());
        }
        if !(self.flops.is_finite() && self.flops > 0.0) {
            return wrong("flops", "a speed above 0".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known models have the sizes that their authors give.
    #[test]
    fn parameters_of_known_models() {
        let billions = |model: &Model| model.parameters() as f64 / 1e9;
        let llama2_7b = Model::default();
        assert!((billions(&llama2_7b) - 6.74).abs() < 0.01, "{}", billions(&llama2_7b));
        let gpt3 = Model {
            layers: 96,
            hidden: 12288,
            inner: 4 * 12288,
            matrices: 2,
            vocabulary: 50257,
            sequence: 2048,
            ..Model::default()
        };
        assert!((billions(&gpt3) - 175.2).abs() < 0.1, "{}", billions(&gpt3));
        // The rule of thumb: 6 operations for each parameter and token, forward and backward.
        let step = 3.0 * (f64::from(gpt3.layers) * gpt3.layer_flops() + gpt3.head_flops());
        let rule = 6.0 * gpt3.parameters() as f64 * gpt3.sequence as f64;
        assert!((0.97..1.06).contains(&(step / rule)), "{}", step / rule);
    }
}
