//! Versions of the JSON that programs read.

/// The version of a kind of JSON: a type whose only value is the text of the key `schema`, so that another version is not read.
macro_rules! schema {
    ($name:ident of $kind:ident: $text:literal) => {
        #[doc = concat!("The version of a [`", stringify!($kind), "`].")]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            /// This version.
            #[default]
            #[serde(rename = $text)]
            This,
        }
    };
}

pub(crate) use schema;
