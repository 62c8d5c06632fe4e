//! Enums whose variants have names, in tables and options.

/// Defines an enum whose variants have names.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// Every variant, in the order of declaration.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// The name in tables and reports.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }

            /// The variant of that name, if there is one.
            pub fn from_name(name: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|known| known.name() == name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
pub(crate) use named;

named! {
    /// The shape of a tree over p nodes, of which node 0 is the root.
    #[derive(Default)]
    Tree {
        /// All others are children of 0.
        Flat = "flat",
        /// Parent: lowest set bit cleared. The subtree of v is [v, v + lowest bit of v).
        #[default]
        Binomial = "binomial",
        /// Parent: highest set bit cleared.
        BinomialSpread = "binomial-spread",
        /// In base `fanout`, parent: lowest digit other than 0 cleared.
        Knomial = "knomial",
        /// `fanout` chains of consecutive nodes, as equal as can be, the longer ones first.
        Chain = "chain",
        /// Level l holds 2ˡ consecutive nodes; the children of v on it are v + 2ˡ and v + 2·2ˡ.
        Binary = "binary",
    }
}
