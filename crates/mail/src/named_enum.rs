//! A macro for enums whose variants have names.

/// Declares an enum whose variants have names, such as those in settings, responses and labels of metrics. The enum gets
/// `ALL`, `name` and `from_name`, and is displayed as its name.
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$($attribute:tt)*])*
        $visibility:vis enum $type:ident {
            $($(#[$($variant_attribute:tt)*])* $variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$($attribute)*])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $type {
            $($(#[$($variant_attribute)*])* $variant,)+
        }

        #[allow(dead_code, reason = "few enums need all of these")]
        impl $type {
            /// All variants, in the order of their discriminants.
            $visibility const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Returns the name.
            $visibility const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Returns the variant with this name.
            $visibility fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.name() == name)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    named_enum! {
        enum Fruit {
            Apple = "apple",
            BloodOrange = "blood orange",
        }
    }

    #[test]
    fn variants_have_names() {
        for (index, fruit) in Fruit::ALL.into_iter().enumerate() {
            assert_eq!((fruit as usize, Fruit::from_name(fruit.name())), (index, Some(fruit)));
            assert_eq!(fruit.to_string(), fruit.name());
        }
        assert_eq!(Fruit::ALL.map(Fruit::name), ["apple", "blood orange"]);
        assert_eq!(Fruit::from_name("Apple"), None);
    }
}
